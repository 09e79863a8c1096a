// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	"trueup.dev/controlplane/internal/datadir"
)

func openDir(t *testing.T, path string) *datadir.Folder {
	t.Helper()
	folder, err := datadir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Release() })
	return folder
}

func TestPKIKeepsItsAuthorities(t *testing.T) {
	folder := openDir(t, t.TempDir())
	first, err := newPKI(folder, serviceIP)
	if err != nil {
		t.Fatal(err)
	}
	serviceAccountKey, err := os.ReadFile(first.serviceAccountKey)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newPKI(folder, serviceIP)
	if err != nil {
		t.Fatal(err)
	}
	if !first.ca.cert.Equal(second.ca.cert) || !first.frontProxyCA.cert.Equal(second.frontProxyCA.cert) {
		t.Error("authorities differ, want them kept")
	}
	if again, err := os.ReadFile(second.serviceAccountKey); err != nil || !bytes.Equal(again, serviceAccountKey) {
		t.Errorf("service account key differs (%v), want it kept", err)
	}
	if bytes.Equal(first.admin.cert, second.admin.cert) {
		t.Error("admin's certificate is the old one, want a new one")
	}
	if first.ca.cert.Equal(first.frontProxyCA.cert) {
		t.Error("clients and front proxy have the same authority")
	}
}

func TestCertificatesAreForTheirPurposeOnly(t *testing.T) {
	keys, err := newPKI(openDir(t, t.TempDir()), serviceIP)
	if err != nil {
		t.Fatal(err)
	}
	ca, frontProxyCA := x509.NewCertPool(), x509.NewCertPool()
	ca.AddCert(keys.ca.cert)
	frontProxyCA.AddCert(keys.frontProxyCA.cert)
	serving, err := cert.CertsFromFile(keys.servingCert)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"127.0.0.1", "::1", "localhost", "kubernetes.default.svc", serviceIP.String()} {
		if _, err := serving[0].Verify(x509.VerifyOptions{Roots: ca, DNSName: name}); err != nil {
			t.Errorf("serving certificate for %s: %v", name, err)
		}
	}
	client := x509.VerifyOptions{Roots: ca, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := serving[0].Verify(client); err == nil {
		t.Error("serving certificate is accepted as a client certificate")
	}
	admin, err := cert.ParseCertsPEM(keys.admin.cert)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin[0].Verify(client); err != nil {
		t.Errorf("admin's certificate: %v", err)
	}
	client.Roots = frontProxyCA
	if _, err := admin[0].Verify(client); err == nil {
		t.Error("admin's certificate is accepted as that of the front proxy")
	}
}

func TestForeignKubeconfigIsNotOverwritten(t *testing.T) {
	ours, err := encodeKubeconfig("https://127.0.0.1:1", []byte("ca"), credentials{cert: []byte("c"), key: []byte("k")})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cases := []struct {
		reason, name string
		content      []byte
		want         string
	}{
		{"no file", "missing", nil, ""},
		{"left by a control plane that was killed", "ours", ours, ""},
		{
			"of another cluster",
			"other",
			[]byte("apiVersion: v1\nkind: Config\ncurrent-context: production\n"),
			"was not written by a control plane",
		},
		{"not a kubeconfig", "text", []byte("{"), "was not written by a control plane"},
	}
	for _, c := range cases {
		file := filepath.Join(dir, c.name)
		if c.content != nil {
			if err := os.WriteFile(file, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := checkKubeconfigTarget(file)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
}

func TestKubeconfigIsRemovedOnlyIfUnchanged(t *testing.T) {
	dir := t.TempDir()
	unchanged, replaced := filepath.Join(dir, "unchanged"), filepath.Join(dir, "replaced")
	for _, file := range []string{unchanged, replaced} {
		if err := writeKubeconfig(file, []byte("ours")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(replaced, []byte("foreign"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{unchanged, replaced, filepath.Join(dir, "missing")} {
		if err := removeKubeconfig(file, []byte("ours")); err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0].Name() != "replaced" {
		t.Errorf("left = %v, want only the replaced file", left)
	}
}

func TestLogRemembersErrorsAndEndsWithTheFolder(t *testing.T) {
	dir := t.TempDir()
	var user bytes.Buffer
	log, err := newComponentLog(filepath.Join(dir, logName), Options{Verbosity: 1, LogOutput: &user})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"E1 first\n", "I1 information\n", "E1 second\n", "F1 third\n", "W1 warning\n", "E1 fourth\n",
	} {
		if _, err := log.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	want := "\n  last logged: E1 second\n  last logged: F1 third\n  last logged: E1 fourth"
	if got := log.recentErrors(); got != want {
		t.Errorf("recent errors = %q, want %q", got, want)
	}
	content, err := os.ReadFile(filepath.Join(dir, logName))
	if err != nil {
		t.Fatal(err)
	}
	if string(content) != user.String() || !strings.Contains(user.String(), "I1 information\n") {
		t.Errorf("file = %q, user's = %q, want everything in both", content, user.String())
	}
	log.close()
	if err := os.Remove(filepath.Join(dir, logName)); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Write([]byte("E1 late\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, logName)); err == nil {
		t.Error("a late line created the file again")
	}
}
