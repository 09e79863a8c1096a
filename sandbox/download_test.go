// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const releasedBinary = "#!/bin/sh\necho released\n"

func gzipped(t *testing.T, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func checksumOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// releases serves files by their paths. A body that ends with "..." is cut there, before its announced length.
func releases(t *testing.T, files map[string]string) *httptest.Server {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if target, ok := strings.CutPrefix(r.URL.Path, "/redirect/"); ok {
			http.Redirect(w, r, strings.Replace(target, ":/", "://", 1), http.StatusFound)
			return
		}
		content, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if part, cut := strings.CutSuffix(content, "..."); cut {
			w.Header().Set("Content-Length", "1000")
			content = part
		}
		_, _ = w.Write([]byte(content))
	}))
	t.Cleanup(server.Close)
	return server
}

func TestDownload(t *testing.T) {
	platform := runtime.GOOS + "_" + runtime.GOARCH
	archive := gzipped(t, releasedBinary)
	server := releases(t, map[string]string{
		"/v1.2.3/plain_" + platform:          releasedBinary,
		"/v1.2.3/packed_" + platform + ".gz": archive,
		"/v1.2.3/checksums.txt": checksumOf(releasedBinary) + "  plain_" + platform + "\n" +
			checksumOf(archive) + " *packed_" + platform + ".gz\n" + checksumOf("x") + "  wrong\n" +
			checksumOf("y") + "  cut\n" +
			checksumOf("not a gzip file") + "  damaged.gz\n",
		"/v1.2.3/wrong":                       "y",
		"/v1.2.3/cut":                         "y...",
		"/v1.2.3/damaged.gz":                  "not a gzip file",
		"/v1.2.3/unlisted":                    "z",
		"/bare/v1.2.3/plain_" + platform:      releasedBinary,
		"/bare/v1.2.3/" + platform + "/plain": releasedBinary,
	})
	cases := map[string]struct{ path, want string }{
		"a binary":               {"/{version}/plain_{os}_{arch}", ""},
		"a compressed binary":    {"/{version}/packed_{os}_{arch}.gz", ""},
		"a checksum in the URL":  {"/bare/{version}/plain_{os}_{arch}#sha256=" + checksumOf(releasedBinary), ""},
		"another checksum in it": {"/{version}/plain_{os}_{arch}#sha256=" + checksumOf("x"), "want " + checksumOf("x")},
		"a wrong checksum": {
			"/{version}/wrong", "the checksum is " + checksumOf("y") + ", want " + checksumOf("x"),
		},
		"a truncated body":           {"/{version}/cut", "/v1.2.3/cut: unexpected EOF"},
		"a damaged archive":          {"/{version}/damaged.gz", "damaged.gz: gzip: invalid header"},
		"a file that does not exist": {"/{version}/nothing#sha256=" + checksumOf("x"), "/v1.2.3/nothing: 404 Not Found"},
		"no checksums":               {"/bare/{version}/plain_{os}_{arch}", "/bare/v1.2.3/checksums.txt: 404 Not Found"},
		"an unlisted file":           {"/{version}/unlisted", "checksums.txt does not list unlisted"},
		"a redirect to http": {
			"/redirect/http://127.0.0.1:1/{version}/x#sha256=" + checksumOf("x"), "127.0.0.1:1/v1.2.3/x, which is not https",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := newDownload(server.URL+c.path, "v1.2.3")
			if err != nil {
				t.Fatal(err)
			}
			d.client.Transport = server.Client().Transport
			target := filepath.Join(t.TempDir(), "key", binaryName)
			var out syncBuffer
			b := &builder{source: source{version: "v1.2.3"}, download: d, target: target, out: &out}
			err = b.build(t.Context())
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) ||
					!strings.Contains(err.Error(), "unset "+DownloadVariable) {
					t.Errorf("got error %v, want %q in it", err, c.want)
				}
				assertFiles(t, filepath.Dir(target), "lock")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if content, err := os.ReadFile(target); err != nil || string(content) != releasedBinary {
				t.Errorf("got %q, %v", content, err)
			}
			if err := checkExecutable(target); err != nil {
				t.Error(err)
			}
			assertFiles(t, filepath.Dir(target), "lock", binaryName)
			if !strings.HasSuffix(out.String(), "trueup: downloaded "+target+"\n") {
				t.Errorf("progress:\n%s", out.String())
			}
		})
	}
}

func TestDownloadVariable(t *testing.T) {
	for address, want := range map[string]string{
		"https://example.com/{version}/x":             "",
		"http://example.com/{version}/x":              "must start with https://",
		"/{version}/x":                                "must start with https://",
		"https://example.com/x":                       "must contain {version}",
		"https://example.com/{version}/x#sha256=1234": "must be sha256= and 64 hexadecimal digits",
		"https://example.com/{version}/x#md5":         "must be sha256= and 64 hexadecimal digits",
		"https://exa mple.com/{version}/x":            "invalid character",
	} {
		_, err := newDownload(address, "v1.2.3")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), DownloadVariable)) {
			t.Errorf("%s: got error %v, want %q and the variable in it", address, err, want)
		}
	}
}

// A version is downloaded if that is configured; a checkout is always built.
func TestDownloadIsOnlyForReleases(t *testing.T) {
	emptyCache(t)
	t.Setenv(DownloadVariable, "http://example.com/{version}")
	t.Setenv("PATH", t.TempDir())
	t.Chdir(checkout(t))
	if _, err := findBinary(t.Context(), &Options{Progress: &syncBuffer{}}); err == nil ||
		!strings.Contains(err.Error(), "no go command is on the PATH") {
		t.Errorf("in a checkout got error %v, want that it cannot be built", err)
	}
}
