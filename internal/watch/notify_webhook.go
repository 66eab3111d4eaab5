package watch

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

// Headers of a webhook's request.
const (
	HeaderTime      = "Tenwalls-Time"      // when this delivery was signed, seconds since 1970
	HeaderSignature = "Tenwalls-Signature" // "sha256=" and the hex HMAC-SHA256 over the time, a full stop and the body
)

// minSecret is the least length of a webhook's secret, in bytes.
const minSecret = 16

// WebhookHook delivers a notice by POST, signed, to one address. Redirects are
// not followed: the body would go, signed, to somebody who was not named.
type WebhookHook struct {
	URL    string
	Secret []byte
	Client *http.Client
}

// NewWebhook reads the secret, which nobody else may read or write.
func NewWebhook(w Webhook) (*WebhookHook, error) {
	f, err := os.Open(w.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("notify.webhook.secret_file: %w", err)
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("notify.webhook.secret_file: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("notify.webhook.secret_file: %s has mode %s: it must be a regular file of 0600 or narrower: chmod 600 it", w.SecretFile, info.Mode())
	}
	secret, err := io.ReadAll(io.LimitReader(f, maxLine))
	if err != nil {
		return nil, fmt.Errorf("notify.webhook.secret_file: %w", err)
	}
	secret = bytes.TrimRight(secret, "\r\n")
	if len(secret) < minSecret {
		return nil, fmt.Errorf("notify.webhook.secret_file: %s holds %d bytes, less than %d: openssl rand -hex 32 makes one", w.SecretFile, len(secret), minSecret)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &WebhookHook{URL: w.URL, Secret: secret, Client: client}, nil
}

// Name implements [Messenger]. The address may carry a token: it is not told.
func (*WebhookHook) Name() string { return "webhook" }

// Deliver implements [Messenger].
func (h *WebhookHook) Deliver(ctx context.Context, notice []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(notice))
	if err != nil {
		return errors.New("webhook: the address is no URL")
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "tenwalls")
	req.Header.Set(HeaderTime, now)
	req.Header.Set(HeaderSignature, "sha256="+Sign(h.Secret, now, notice))
	resp, err := h.Client.Do(req)
	if err != nil {
		// *url.Error repeats the address.
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return fmt.Errorf("webhook: %w", err)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxLine)) // so that the connection is used again
	err = errors.Join(err, resp.Body.Close())
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return errors.Join(fmt.Errorf("webhook: answered %d", resp.StatusCode), err)
	}
	return nil // accepted, whatever became of its body
}

// Sign is the hex HMAC-SHA256 (RFC 2104) that a receiver computes again, over
// the time as it was sent, a full stop and the body. A receiver should refuse an
// old time, and compare with hmac.Equal.
func Sign(secret []byte, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
