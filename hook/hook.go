// Package hook tells a URL what an agent said, as the Standard Webhooks specification (standardwebhooks.com, version 1.0.0)
// says: a signed POST of JSON under an id that never changes. It owns one attempt; when it is made, and made again, is the
// host's.
package hook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"memgpt"
)

// Names of the headers, and what a secret begins with (Standard Webhooks, "Webhook headers" and "Signature scheme").
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
	secretPrefix    = "whsec_"
	schemePrefix    = "v1,"
)

const (
	secretBytes = 32       // the specification wants 24 to 64
	maxAnswer   = 64 << 10 // bytes of an answer that are read, so that its connection can be used again
	maxHeaders  = 16 << 10 // bytes of its headers
	idleTime    = time.Minute
)

// Sender posts. It is safe for concurrent use.
type Sender struct {
	client *http.Client
	now    func() time.Time
}

// New returns a Sender. It follows no redirect, and holds at most two connections to a place. now is the clock of timestamps; nil
// is time.Now.
func New(now func() time.Time) *Sender {
	if now == nil {
		now = time.Now
	}
	return &Sender{now: now, client: &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, MaxConnsPerHost: 2,
			IdleConnTimeout: idleTime, MaxResponseHeaderBytes: maxHeaders},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close ends the connections that are kept.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// Post makes one attempt: it posts a body under an id, signed with each of the secrets. It returns the status of the answer, and
// for how long the server asked not to be asked again; zero where it didn't. An error says that there was no answer: it names
// neither the URL, which may hold a password, nor anything that was sent. The end of ctx ends the attempt.
func (s *Sender) Post(ctx context.Context, to string, secrets []string, id string, body []byte) (status int, after time.Duration, err error) {
	now := s.now()
	signature, err := Sign(secrets, id, now, body)
	if err != nil {
		return 0, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, 0, memgpt.Errorf(memgpt.CodeInvalid, "the URL can't be used")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "memgpt")
	req.Header.Set(headerID, id)
	req.Header.Set(headerTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(headerSignature, signature)
	answer, err := s.client.Do(req)
	if err != nil {
		return 0, 0, reason(err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	return answer.StatusCode, retryAfter(answer.Header.Get("Retry-After"), now), nil
}

// Sign returns the value of the signature's header: of each secret, the HMAC-SHA256 of id, timestamp in seconds and body.
func Sign(secrets []string, id string, at time.Time, body []byte) (string, error) {
	var list []string
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
		if err != nil || len(key) == 0 {
			return "", memgpt.Errorf(memgpt.CodeInvalid, "the secret can't be read: a new one is needed")
		}
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, id+"."+strconv.FormatInt(at.Unix(), 10)+".")
		_, _ = mac.Write(body)
		list = append(list, schemePrefix+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(list, " "), nil
}

// NewSecret returns a new secret.
func NewSecret() string {
	key := make([]byte, secretBytes)
	_, _ = rand.Read(key) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// Check returns an error for what is no URL of a hook. What an agent says must not be read on its way: without TLS only this
// machine itself is a place to send it to.
func Check(to string) error {
	u, err := url.Parse(to)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it takes a URL, as https://example.org/memgpt")
	case u.User != nil:
		return errors.New("it takes a URL without name and password: requests are signed, and memgpt agents hook NAME shows the secret")
	case u.Fragment != "":
		return errors.New("it takes a URL without a part after #, which is never sent")
	case u.Scheme == "http" && !local(u.Hostname()):
		return errors.New("it takes https: over http anybody on the way could read what the agent says; http is for this machine only (localhost, 127.0.0.1, [::1])")
	}
	return nil
}

// local reports whether a host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// reason returns why there was no answer. The text of a *url.Error holds the URL.
func reason(err error) error {
	if wrong := (*url.Error)(nil); errors.As(err, &wrong) {
		err = wrong.Err
	}
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return memgpt.Errorf(memgpt.CodeBusy, "no answer in time")
	case errors.Is(err, context.Canceled):
		return memgpt.Errorf(memgpt.CodeCancelled, "called off: %w", context.Canceled)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return memgpt.Errorf(memgpt.CodeBusy, "the connection was closed without an answer")
	}
	var (
		network *net.OpError
		lookup  *net.DNSError
		cert    *tls.CertificateVerificationError
		plain   tls.RecordHeaderError
	)
	if errors.As(err, &network) || errors.As(err, &lookup) || errors.As(err, &cert) || errors.As(err, &plain) {
		return memgpt.Errorf(memgpt.CodeBusy, "%s", memgpt.CutText(memgpt.CleanText(err.Error()), 200))
	}
	return memgpt.Errorf(memgpt.CodeBusy, "what came back is no answer of HTTP") // its text may repeat what was sent
}

// retryAfter reads the header of the name: seconds, or a date (RFC 9110, section 10.2.3).
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
