// Package ingest is a stand-in for Grafana Pyroscope's POST /ingest. It takes what the page
// "Server HTTP API" of Pyroscope's documentation says that Pyroscope takes, within Pyroscope's
// default limits, refuses everything else with a reason, and keeps what it has taken.
package ingest
