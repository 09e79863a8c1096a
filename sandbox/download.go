// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// DownloadVariable is the environment variable with the URL from which the control plane binary is downloaded instead
// of being built. See the package's documentation. Default: nothing is downloaded.
const DownloadVariable = "TRUEUP_CONTROLPLANE_DOWNLOAD"

const (
	checksumsName = "checksums.txt"
	maxChecksums  = 1 << 20
	// stalled is how long a download may receive nothing.
	stalled = time.Minute
	// checksumFragment precedes the checksum in the fragment of the URL.
	checksumFragment = "sha256="
)

// download is a file with the control plane binary on a server.
type download struct {
	url      *url.URL
	checksum string // in hexadecimal; "" if it is in the file checksums.txt beside
	client   *http.Client
}

// newDownload returns the download of a version for this platform. address is the value of DownloadVariable.
func newDownload(address, version string) (*download, error) {
	if !strings.Contains(address, "{version}") {
		return nil, fmt.Errorf("sandbox: %s: %q must contain {version}", DownloadVariable, address)
	}
	replaced := strings.NewReplacer("{version}", version, "{os}", runtime.GOOS, "{arch}", runtime.GOARCH).Replace(address)
	u, err := url.Parse(replaced)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %s: %w", DownloadVariable, err)
	}
	if u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("sandbox: %s: %q must start with https://", DownloadVariable, address)
	}
	d := &download{url: u, client: &http.Client{CheckRedirect: onlyHTTPS}}
	if u.Fragment != "" {
		checksum, ok := strings.CutPrefix(u.Fragment, checksumFragment)
		if _, err := hex.DecodeString(checksum); !ok || err != nil || len(checksum) != hex.EncodedLen(sha256.Size) {
			return nil, fmt.Errorf(
				"sandbox: %s: %q must be %s and 64 hexadecimal digits", DownloadVariable, "#"+u.Fragment, checksumFragment,
			)
		}
		d.checksum = strings.ToLower(checksum)
		u.Fragment = ""
	}
	return d, nil
}

func onlyHTTPS(request *http.Request, via []*http.Request) error {
	if request.URL.Scheme != "https" {
		return fmt.Errorf("redirected to %s, which is not https", request.URL)
	}
	if len(via) >= 10 {
		return errors.New("too many redirects")
	}
	return nil
}

// fetch downloads the binary into the directory work and returns its path.
func (d *download) fetch(ctx context.Context, work string, display *progress) (string, error) {
	display.phase("downloading the checksum of the control plane")
	checksum := d.checksum
	if checksum == "" {
		var err error
		if checksum, err = d.listed(ctx); err != nil {
			return "", err
		}
	}
	archive := filepath.Join(work, "download")
	got, err := d.save(ctx, archive, display)
	if err != nil {
		return "", fmt.Errorf("%s: %w", d.url.Redacted(), err)
	}
	if got != checksum {
		return "", fmt.Errorf(
			"%s: the checksum is %s, want %s: the file is not the released one", d.url.Redacted(), got, checksum,
		)
	}
	binary := filepath.Join(work, binaryName)
	if path.Ext(d.url.Path) != ".gz" {
		return binary, errors.Join(os.Rename(archive, binary), os.Chmod(binary, 0o755))
	}
	display.phase("unpacking the control plane")
	if err := unpack(archive, binary); err != nil {
		return "", fmt.Errorf("unpacking %s: %w", d.url.Redacted(), err)
	}
	return binary, nil
}

// listed returns the checksum of the file from the list beside it.
func (d *download) listed(ctx context.Context) (string, error) {
	list := d.url.JoinPath("..", checksumsName)
	var content bytes.Buffer
	err := d.get(ctx, list, func(body io.Reader, _ int64) error {
		_, err := io.Copy(&content, io.LimitReader(body, maxChecksums))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", list.Redacted(), err)
	}
	name := path.Base(d.url.Path)
	for lines := bufio.NewScanner(&content); lines.Scan(); {
		// The format of sha256sum: the checksum, a blank, a blank or an asterisk, and the name.
		if checksum, file, ok := strings.Cut(lines.Text(), " "); ok && strings.TrimLeft(file, " *") == name {
			return strings.ToLower(checksum), nil
		}
	}
	return "", fmt.Errorf("%s does not list %s", list.Redacted(), name)
}

// save downloads the file and returns its checksum.
func (d *download) save(ctx context.Context, target string, display *progress) (checksum string, err error) {
	file, err := os.Create(target)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := sha256.New()
	err = d.get(ctx, d.url, func(body io.Reader, size int64) error {
		shown := &transfer{display: display, size: size, began: time.Now()}
		_, err := io.Copy(io.MultiWriter(file, sum, shown), body)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// get calls read with the body and the size of a file, which is -1 if it is unknown.
func (d *download) get(ctx context.Context, from *url.URL, read func(body io.Reader, size int64) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(stalled, func() { cancel(fmt.Errorf("received nothing for %s", stalled)) })
	defer timer.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return err
	}
	response, err := d.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // callers name the URL
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	err = read(readerFunc(func(p []byte) (int, error) {
		timer.Reset(stalled)
		return response.Body.Read(p)
	}), response.ContentLength)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// transfer shows how much of a download has been written to it.
type transfer struct {
	display    *progress
	size, done int64
	began      time.Time
}

func (t *transfer) Write(p []byte) (int, error) {
	const megabyte = 1 << 20
	t.done += int64(len(p))
	if t.size <= 0 {
		t.display.update("downloading the control plane: %d MB", t.done/megabyte)
	} else {
		t.display.update("downloading the control plane: %d of %d MB", t.done/megabyte, t.size/megabyte)
		t.display.expect(remaining(time.Since(t.began), float64(t.done)/float64(t.size)))
	}
	return len(p), nil
}

// unpack writes the content of a gzip file to an executable file.
func unpack(archive, binary string) (err error) {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	content, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	target, err := os.OpenFile(binary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, content)
	return errors.Join(err, target.Close(), os.Remove(archive))
}
