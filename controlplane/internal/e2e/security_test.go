// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestAnonymousRequestsAreRefused(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(p.config))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/", "/api", "/healthz", "/readyz", "/version", "/api/v1/namespaces/default", "/api/v1/secrets",
	} {
		response, err := client.Get(p.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("GET %s: status %d, want %d", path, response.StatusCode, http.StatusUnauthorized)
		}
	}
}

// RBAC is enabled: a known user without rights is denied.
func TestServiceAccountHasNoRightsByDefault(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	var token string
	eventually(t, waitLimit, "token for the default service account", func(ctx context.Context) error {
		request, err := p.client.CoreV1().ServiceAccounts(namespace).CreateToken(
			ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{},
		)
		if err == nil {
			token = request.Status.Token
		}
		return err
	})
	config := rest.AnonymousClientConfig(p.config)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list secrets: %v, want forbidden", err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(
		t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + namespace + ":default"; review.Status.UserInfo.Username != want {
		t.Errorf("user = %s, want %s", review.Status.UserInfo.Username, want)
	}
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	p := start(t, "--controllers", "none", "--kubeconfig", kubeconfig)
	info, err := os.Stat(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("%s: mode %o, want 600", kubeconfig, got)
	}
	err = filepath.WalkDir(p.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch mode := info.Mode(); {
		case path == p.Dir && mode.Perm() != 0o700:
			t.Errorf("%s: mode %o, want 700", path, mode.Perm())
		case mode.IsRegular() && mode.Perm()&0o077 != 0:
			t.Errorf("%s: mode %o, want none for others", path, mode.Perm())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOnlyLoopbackListens(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	parsed, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Hostname() != "127.0.0.1" {
		t.Errorf("url = %s, want host 127.0.0.1", p.URL)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if !ok || network.IP.IsLoopback() || network.IP.To4() == nil {
			continue
		}
		target := net.JoinHostPort(network.IP.String(), parsed.Port())
		if connection, err := net.Dial("tcp", target); err == nil {
			connection.Close()
			t.Errorf("%s accepts connections", target)
		}
	}
	if listening := listeningSockets(t, p.PID); len(listening) != 1 {
		t.Errorf("listening TCP sockets = %v, want only kube-apiserver's", listening)
	}
}
