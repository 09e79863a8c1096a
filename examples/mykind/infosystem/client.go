// SPDX-License-Identifier: Apache-2.0

// Package infosystem is an external system that stores an info for each resource: a client, and a server that keeps the
// infos in memory.
package infosystem

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Timeout limits each request to the system.
const Timeout = 5 * time.Second

// Info is what the system stores for a resource.
type Info struct {
	SomeInfo  string `json:"someInfo"`
	OtherInfo string `json:"otherInfo"`
}

// Client is an HTTP client of the system.
type Client struct {
	base *url.URL
	http *http.Client
}

// NewClient returns a client of the system at a base URL, which must have the scheme http or https.
func NewClient(base string) (*Client, error) {
	parsed, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, fmt.Errorf("invalid URL %q: must start with http:// or https:// and have a host", base)
	}
	return &Client{base: parsed, http: http.DefaultClient}, nil
}

// ApplyInfo creates or replaces an info.
func (c *Client) ApplyInfo(namespace, name, someInfo, otherInfo string) error {
	body, err := json.Marshal(Info{SomeInfo: someInfo, OtherInfo: otherInfo})
	if err != nil {
		return err
	}
	return c.do(http.MethodPut, namespace, name, body)
}

// Delete deletes an info. It returns nil if the info does not exist.
func (c *Client) Delete(namespace, name string) error {
	return c.do(http.MethodDelete, namespace, name, nil)
}

func (c *Client) do(method, namespace, name string, body []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(
		ctx, method, c.base.JoinPath("infos", namespace, name).String(), bytes.NewReader(body),
	)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return &retryableError{err}
	}
	defer func() { _ = resp.Body.Close() }() // the body was only read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	switch {
	case resp.StatusCode < 300 && err == nil:
		return nil
	case resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests && err == nil:
		return fmt.Errorf("%s %s: %s: %s", method, req.URL, resp.Status, bytes.TrimSpace(answer))
	}
	return &retryableError{errors.Join(fmt.Errorf("%s %s: %s", method, req.URL, resp.Status), err)}
}

// IsRetryable reports whether a later call may succeed: the system could not be reached, or it failed.
func IsRetryable(err error) bool {
	var retryable *retryableError
	return errors.As(err, &retryable)
}

type retryableError struct{ error }

func (e *retryableError) Unwrap() error { return e.error }
