// Command agents plays many agents to a gateway: each has a connection of its own, and sends
// requests that a real agent has sent, under a name of its own, compressed with zstd as agents
// do. What the gateway does not take is sent again. It is the backend behind the gateway,
// too, so that it can say at the end, as JSON, what was sent and what has arrived.
package main
