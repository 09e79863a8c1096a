// SPDX-License-Identifier: Apache-2.0

// Package why prints the last reconciles of an object, from the console of a running controller.
package why

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"

	"trueup.dev/cmd/trueup/internal/screen"
	"trueup.dev/console"
)

// Options select the object and the console.
type Options struct {
	Kind, Name string
	Controller string // any by default
	URL        string
	Token      string
	CAFile     string // the certificates of the system by default
	Insecure   bool
	Runs       int
}

// standby describes a replica that is not the leader.
const standby = "this replica reconciles nothing: it is not elected as the leader"

// maxObjects limits the objects that are printed.
const maxObjects = 5

// Print prints the last reconciles of an object.
func Print(ctx context.Context, s *screen.Screen, o Options) error {
	c, err := newClient(o)
	if err != nil {
		return err
	}
	found, err := c.find(ctx, o)
	if err != nil {
		return err
	}
	for i, object := range found.Objects[:min(maxObjects, len(found.Objects))] {
		var page console.Object
		if err := c.get(ctx, console.ObjectPath(object), &page); err != nil {
			return err
		}
		if i > 0 {
			s.Print("\n")
		}
		(&printer{s, time.Now()}).object(page, o.Runs)
	}
	if omitted := found.Total - maxObjects; omitted > 0 {
		s.Print(fmt.Sprintf("\n%d more objects have this name: add the namespace.\n", omitted))
	}
	if waits := unstarted(found); waits != "" {
		s.Print(waits + "\n")
	}
	if found.Standby {
		s.Print("\n" + standby + "\n")
	}
	return nil
}

type client struct {
	base  *url.URL
	token string
	http  *http.Client
}

func newClient(o Options) (*client, error) {
	base, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("--url: must start with http:// or https:// and a host, got %q", o.URL)
	}
	if !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
	}
	config := &tls.Config{InsecureSkipVerify: o.Insecure} // on request
	if o.CAFile != "" {
		certificates, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--certificate-authority: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(certificates) {
			return nil, fmt.Errorf("--certificate-authority: %s has no certificates in PEM format", o.CAFile)
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = config
	return &client{base, o.Token, &http.Client{Transport: transport, Timeout: 30 * time.Second}}, nil
}

// get reads JSON from a path below the console.
func (c *client) get(ctx context.Context, path string, into any) error {
	address, err := c.base.Parse(path)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("read the console: %w; is the controller running, and --url right?", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("read the console: %w", err)
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s: %s: %s; --token must be that of a user who may get %s", c.base, response.Status,
			strings.TrimSpace(string(body)), c.base.Path)
	case reason(body) != "" && response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", address, reason(body))
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s; is this the URL of a console?", address, response.Status)
	}
	if err := decode(body, into); err != nil {
		return fmt.Errorf("%s: the answer is not that of a console: %w", address, err)
	}
	return nil
}

// reason returns the error that the console answered, or "".
func reason(body []byte) string {
	var answer struct {
		Error string `json:"error"`
	}
	if err := decode(body, &answer); err != nil {
		return ""
	}
	return answer.Error
}

// decode decodes JSON without control characters, which could change what the terminal shows.
func decode(body []byte, into any) error {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	clean, err := json.Marshal(printable(value))
	if err != nil {
		return err
	}
	return json.Unmarshal(clean, into)
}

func printable(value any) any {
	switch v := value.(type) {
	case string:
		return strings.Map(func(r rune) rune {
			if r != '\n' && r != '\t' && unicode.IsControl(r) {
				return -1
			}
			return r
		}, v)
	case []any:
		for i := range v {
			v[i] = printable(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = printable(v[key])
		}
	}
	return value
}
