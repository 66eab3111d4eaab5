package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// Client asks a daemon over its socket.
type Client struct{ Socket string }

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 4 << 20

// Status asks for the daemon's state.
func (c Client) Status(ctx context.Context) (*Status, error) {
	data, err := c.ask(ctx, http.MethodGet, "/status", nil)
	if err != nil {
		return nil, err
	}
	var s Status
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.Socket, err)
	}
	return &s, nil
}

// Trigger asks for a run now. It returns when that is due, not when it has ended.
func (c Client) Trigger(ctx context.Context, reason string) error {
	body, err := json.Marshal(Wish{reason})
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.Socket, err)
	}
	_, err = c.ask(ctx, http.MethodPost, "/trigger", body)
	return err
}

// askAgain is how often a daemon is asked for the end of a run: nobody tells it.
const askAgain = time.Second

// Await triggers a run and waits until one that began after that has ended. It
// returns the state then; its Last is the run, unless the daemon can make none:
// then that is told as an error.
func (c Client) Await(ctx context.Context, reason string) (*Status, error) {
	before, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.Trigger(ctx, reason); err != nil {
		return nil, err
	}
	for idle := 0; ; {
		s, err := c.Status(ctx)
		switch {
		case err != nil:
			return nil, err
		case s.Last != nil && !s.Last.Began.Before(before.At):
			return s, nil
		case s.Running == nil && s.Due == "":
			if idle++; idle > 2 { // not only between two events
				return nil, fmt.Errorf("the daemon makes no run: %s", s.Why)
			}
		default:
			idle = 0
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the run: %w", context.Cause(ctx))
		case <-time.After(askAgain):
		}
	}
}

// dialAgain is how often a queue that is full is tried: nobody tells when it has
// room.
const dialAgain = 2 * time.Millisecond

// dial waits for room where too many ask at once: a socket that does not block
// says EAGAIN then (unix(7)).
func (c Client) dial(ctx context.Context) (net.Conn, error) {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.Socket)
		if !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("too many ask at once: %w", ctx.Err())
		case <-time.After(dialAgain):
		}
	}
}

func (c Client) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*askWithin)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://daemon"+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.Socket, err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("ask %s: no daemon listens there: start harness watch, or name its socket (--socket) or configuration (--config)", c.Socket)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("ask %s: refused: ask as root, or as a member of the socket's group (%w)", c.Socket, err)
	case err != nil && strings.Contains(err.Error(), "server closed idle connection"), // net/http has no name for it
		errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return nil, fmt.Errorf("ask %s: closed without an answer: ask as root, or as a member of the socket's group; who is one asks again, since so many may ask at once (%d) (%w)", c.Socket, maxConnections, err)
	case err != nil:
		return nil, fmt.Errorf("ask %s: %w", c.Socket, err)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.Socket, err)
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("ask %s: %s", c.Socket, brief(strings.TrimSpace(string(data))))
	}
	return data, nil
}
