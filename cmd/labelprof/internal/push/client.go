// SPDX-License-Identifier: Apache-2.0

package push

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// maxHeaderBytes bounds the headers of an answer.
const maxHeaderBytes = 64 << 10

// client sends parts to one server.
type client struct {
	http     *http.Client
	ingest   url.URL
	shown    string // the server, for people
	tenant   string
	secret   secret
	timeout  time.Duration
	patience time.Duration
	wait     func(n int) time.Duration // before the try n+1
}

// newClient fails where the settings say something that cannot be meant.
func newClient(f *settings, s secret) (*client, error) {
	server, err := parseServer(f.server)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(s.user+s.token, "\r\n") {
		return nil, errors.New("the token and its user are one line each")
	}
	if s.token == "" && s.user != "" {
		return nil, fmt.Errorf("%s is set and %s is not", envUser, envToken)
	}
	if s.token != "" && server.Scheme == "http" && !isLoopback(server.Hostname()) {
		return nil, fmt.Errorf("%s is set: it goes over https, or to this machine", envToken)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is documented to be one
	transport.MaxResponseHeaderBytes = maxHeaderBytes
	if f.caFile != "" {
		roots, err := readRoots(f.caFile)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &client{
		http: &http.Client{
			Transport: transport,
			// The profile, and the token, are for this server.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		ingest: *server.JoinPath("ingest"), shown: server.String(),
		tenant: f.tenant, secret: s, timeout: f.timeout, patience: f.patience, wait: backoff,
	}, nil
}

func parseServer(text string) (*url.URL, error) {
	server, err := url.Parse(text)
	switch {
	case err != nil || server.Host == "" || server.Scheme != "http" && server.Scheme != "https":
		return nil, errors.New("--server is no URL of http or https, such as https://pyroscope.example.com")
	case server.User != nil:
		return nil, fmt.Errorf("--server has a user in it, which others can read: set %s and %s", envUser, envToken)
	case server.RawQuery != "" || server.Fragment != "":
		return nil, errors.New("--server has more than a host, a port and a path")
	}
	return server, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func readRoots(name string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read %s: it has no certificate", name)
	}
	return roots, nil
}
