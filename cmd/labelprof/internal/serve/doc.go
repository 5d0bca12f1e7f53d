// SPDX-License-Identifier: Apache-2.0

// Package serve is the command that receives OTLP profiles by gRPC, or reads files, and shows
// them: live on a terminal, and as a page for browsers.
//
// Clients are strangers. A request is only taken off the wire when there is a place for it,
// and only decoded when what that takes is known; where many want to send, the connection
// that has been silent longest ends. Connections have places for their requests in turn, and while others
// wait, who sends nothing gives his up. Nothing that a client does holds up the end.
package serve
