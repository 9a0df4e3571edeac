# syntax=docker/dockerfile:1

FROM rust:1.95-bookworm AS build
WORKDIR /build
# The dependencies first, below stand-ins for our own code: this layer is built again only when the
# manifest or the lock file changes.
COPY Cargo.toml Cargo.lock ./
RUN mkdir src \
    && echo '//! Stands in for the library.' > src/lib.rs \
    && echo 'fn main() {}' > src/main.rs \
    && cargo build --release --locked --bin onceward
COPY config config
# The pages that the documentation of the library includes.
COPY docs docs
COPY src src
# The sample events of `onceward demo`.
COPY tests/fixtures tests/fixtures
# Copied files keep their old times; without `touch` they would look older than the stand-ins.
RUN touch src/lib.rs src/main.rs \
    && cargo build --release --locked --bin onceward \
    && mkdir -p /image/onceward

# glibc of the same Debian as above, the certificates of public authorities, and no shell.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /build/target/release/onceward /usr/local/bin/onceward
# The directory has to be in the image, with its owner: a new volume takes over both.
COPY --from=build --chown=65532:65532 /image/ /var/lib/

# By number, so that Kubernetes can see that it is not root.
USER 65532:65532

# The only place that is written to: the rest can be read-only. The store's built-in path,
# `onceward-data`, is relative and so lies in the volume. An absolute one goes into the file
# (`[store.embedded] path`) or into ONCEWARD_STORE__EMBEDDED__PATH, which wins, and has to lie below
# /var/lib/onceward too.
VOLUME /var/lib/onceward
WORKDIR /var/lib/onceward

# Both listeners are on loopback unless the configuration says otherwise:
# ONCEWARD_SERVER__LISTEN=0.0.0.0:8080 opens the first. ONCEWARD_ADMIN__LISTEN=0.0.0.0:8081 opens the
# second and needs `[admin] token`.
EXPOSE 8080 8081

# Drains, 65 s at most (`shutdown_timeout`), and records what is left: `docker stop -t 75`, and
# `terminationGracePeriodSeconds: 75` in Kubernetes, give it the time. Killed sooner, it leaves what is
# in flight uncertain.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/onceward"]
CMD ["serve", "--config", "/etc/onceward/onceward.toml"]
