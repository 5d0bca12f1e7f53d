// Package inlinestringsextension is the extension inline_strings: a middleware of OTLP exporters
// that writes the strings of resources and scopes of profiles in place.
//
// Exporters of collectors from v0.161 (HTTP) and v0.163 (gRPC) on write them as references into
// the request's table of strings (opentelemetry-collector pull request 15794). Pyroscope and
// Parca of summer 2026 and older collectors do not follow these; everybody reads what is in
// place.
package inlinestringsextension
