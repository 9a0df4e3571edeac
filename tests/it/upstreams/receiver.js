// A receiver of webhooks: it reads what it gets and says 200.
const express = require("express");

const receiver = express();
receiver.use(express.raw({ type: () => true }));
receiver.use((request, response) => response.send("ok"));
receiver.listen(Number(process.argv[2]), "127.0.0.1");
