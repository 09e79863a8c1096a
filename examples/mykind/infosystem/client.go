// SPDX-License-Identifier: Apache-2.0

// Package infosystem is some other system that is told of resources: a client, and a server that keeps what it is told
// in memory.
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

// Timeout is how long the other system may take to answer.
const Timeout = 5 * time.Second

// Info is what the system keeps.
type Info struct {
	SomeInfo  string `json:"someInfo"`
	OtherInfo string `json:"otherInfo"`
}

// Client talks to the system over HTTP.
type Client struct {
	base *url.URL
	http *http.Client
}

// NewClient returns a client of the system at a URL.
func NewClient(base string) (*Client, error) {
	parsed, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of a system: it needs http:// or https:// and a host", base)
	}
	return &Client{base: parsed, http: http.DefaultClient}, nil
}

// ApplyInfo tells the system of an info, new or changed.
func (c *Client) ApplyInfo(namespace, name, someInfo, otherInfo string) error {
	body, err := json.Marshal(Info{SomeInfo: someInfo, OtherInfo: otherInfo})
	if err != nil {
		return err
	}
	return c.do(http.MethodPut, namespace, name, body)
}

// Delete tells the system that an info is no more. What the system does not have is deleted already.
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
	defer func() { _ = resp.Body.Close() }() // it was only read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	switch {
	case resp.StatusCode < 300 && err == nil:
		return nil
	case resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests && err == nil:
		return fmt.Errorf("%s %s: %s: %s", method, req.URL, resp.Status, bytes.TrimSpace(answer))
	}
	return &retryableError{errors.Join(fmt.Errorf("%s %s: %s", method, req.URL, resp.Status), err)}
}

// IsRetryable is true when the system could not be reached, or was not well: it may be better in a while.
func IsRetryable(err error) bool {
	var retryable *retryableError
	return errors.As(err, &retryable)
}

type retryableError struct{ error }

func (e *retryableError) Unwrap() error { return e.error }
