//! The proxy as a service: of the listener, and inside any tower stack.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;

use super::Proxy;
use crate::upstream::AnswerBody;

type Answering = Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, Infallible>> + Send>>;

impl<B> tower::Service<Request<B>> for Proxy
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering {
        let proxy = self.clone();
        Box::pin(async move { Ok(proxy.handle(request).await) })
    }
}

impl<B> hyper::service::Service<Request<B>> for Proxy
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<B>) -> Answering {
        let proxy = self.clone();
        Box::pin(async move { Ok(proxy.handle(request).await) })
    }
}
