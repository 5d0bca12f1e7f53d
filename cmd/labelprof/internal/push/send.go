// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// maxAnswerBytes is what is read of an answer, shownBytes what is shown of it.
	maxAnswerBytes = 64 << 10
	shownBytes     = 300
	// maxTries bounds how often a request is sent, maxWait the time between two of them where the
	// server does not ask for more.
	maxTries = 12
	maxWait  = 15 * time.Second
	minWait  = 250 * time.Millisecond
)

// A refusal is an answer, or the lack of one, that is not "taken".
type refusal struct {
	err   error
	again bool          // it was not taken, and may be later
	after time.Duration // as the server asks; 0: it does not
}

// last is the error of a refusal after which nothing is tried again: patience has so much left.
func (r *refusal) last(n int, left time.Duration) error {
	err := r.err
	if r.again && r.after > left {
		err = fmt.Errorf("%w; it asks to wait %v, which is longer than --patience", err, r.after.Round(time.Second))
	}
	if n > 1 {
		err = fmt.Errorf("%w (the last of %d tries)", err, n)
	}
	return err
}

// send sends a part until it is taken, refused, or patience ends. It waits as long as the server
// asks, or not at all where that is longer than patience.
func (c *client) send(ctx context.Context, p *part) error {
	b, err := bodyOf(p)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(c.patience)
	for n := 1; ; n++ {
		refused := c.try(ctx, p, b)
		if refused == nil {
			return nil
		}
		wait, left := max(refused.after, c.wait(n)), time.Until(deadline)
		if !refused.again || n == maxTries || wait > left {
			return refused.last(n, left)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// backoff is the wait after the try n: twice as long each time, and not the same for all who
// have been refused at once.
func backoff(n int) time.Duration {
	wait := min(minWait<<min(n-1, 16), maxWait)
	return wait/2 + rand.N(wait/2) //nolint:gosec // no secret
}

// try sends a part once; nil: it was taken.
func (c *client) try(ctx context.Context, p *part, b *body) *refusal {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r, err := c.request(ctx, p, b)
	if err != nil {
		return &refusal{err: c.clean(err)}
	}
	var connected atomic.Bool
	r = r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}))
	answer, err := c.http.Do(r)
	if err != nil {
		return c.unanswered(err, connected.Load())
	}
	defer answer.Body.Close()
	// The status is the answer: a text that breaks off takes nothing back.
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes))
	return c.judge(answer, text)
}

// unanswered is a request without an answer. It was not taken for certain only where there was
// no connection, to the server or to the proxy before it.
func (c *client) unanswered(err error, connected bool) *refusal {
	err = c.clean(err)
	// Of a certificate, the server decides what the error says.
	said := errors.New(c.quote([]byte(err.Error())))
	var op *net.OpError
	var late net.Error
	switch {
	case certificate(err):
		return &refusal{err: said}
	case errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"):
		lookup := new(net.DNSError)
		unknown := errors.As(err, &lookup) && lookup.IsNotFound
		return &refusal{err: err, again: !unknown && !errors.Is(err, syscall.EACCES)}
	case !connected:
		return &refusal{err: fmt.Errorf("no connection: %w", said), again: errors.As(err, &late) && late.Timeout() || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)}
	default:
		return &refusal{err: fmt.Errorf("no answer, so that nobody knows if it was taken: %w", said)}
	}
}

// judge tells whether an answer says that a part was taken.
func (c *client) judge(answer *http.Response, text []byte) *refusal {
	said := c.quote(text)
	switch status := answer.StatusCode; {
	case status/100 == 2:
		if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind == "text/html" {
			return &refusal{err: errors.New("the answer is a web page: that is no /ingest of Pyroscope")}
		}
		return nil
	case status/100 == 3:
		return &refusal{err: fmt.Errorf("it is elsewhere, says status %d: %s", status, c.quote([]byte(answer.Header.Get("Location"))))}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &refusal{err: fmt.Errorf("not allowed, status %d: %s (%s and --tenant say who sends)", status, said, envToken)}
	case status == http.StatusRequestEntityTooLarge:
		return &refusal{err: fmt.Errorf("too large, status %d: %s", status, said)}
	default:
		return &refusal{
			err:   fmt.Errorf("status %d: %s", status, said),
			again: status == http.StatusTooManyRequests || status/100 == 5 && status != http.StatusNotImplemented && status != http.StatusGatewayTimeout,
			after: retryAfter(answer.Header.Get("Retry-After")),
		}
	}
}

// retryAfter is what a server asks for: whole seconds, or a date.
func retryAfter(text string) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(text); err == nil {
		wait = time.Until(date)
	}
	return max(wait, 0)
}

// clean takes what an error says of its own request out of it: the address is known, and what
// is in it is long.
func (c *client) clean(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	return err
}

// quote shows what a server has said: not all of it, and not the token, which it knows.
// It is not escaped: errors are, when they are printed.
func (c *client) quote(text []byte) string {
	said := strings.TrimSpace(string(text))
	if c.secret.token != "" {
		pair := base64.StdEncoding.EncodeToString([]byte(c.secret.user + ":" + c.secret.token))
		said = strings.NewReplacer(c.secret.token, "[token]", pair, "[token]").Replace(said)
	}
	if said == "" {
		return "no text"
	}
	return shown(said)
}

// shown is a text of a stranger within an error: not long, and on one line, which would otherwise
// pass for one of ours.
func shown(s string) string {
	if len(s) > shownBytes {
		s = s[:shownBytes] + "..."
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\n", " ")
}
