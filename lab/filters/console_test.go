// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/console"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/await"
	"trueup.dev/sandbox"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// TestWhoMayReadTheConsole requests the console from a manager whose metrics server checks tokens and permissions with
// the API server: without a token, as a user without the permission, and as a user with the role of the package's
// documentation.
func TestWhoMayReadTheConsole(t *testing.T) {
	e := apitest.New(t, clientgoscheme.Scheme, sandbox.TestOptions{})
	address := fmt.Sprintf("127.0.0.1:%d", e.FreePort())
	e.Manager(e.RESTConfig(), ctrl.Options{Metrics: metricsserver.Options{
		BindAddress: address, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		CertDir: t.TempDir(), // without a certificate, the server makes one
	}}, func(_ context.Context, mgr ctrl.Manager) error { return console.AddToManager(mgr, console.Options{}) })

	grant(e, "console-of-"+e.Namespace, "operator", rbacv1.PolicyRule{
		NonResourceURLs: []string{"/console", "/console/*"}, Verbs: []string{"get"},
	})
	operator, visitor := token(e, "operator"), token(e, "visitor")

	for _, tc := range []struct {
		reason, path, token string
		want                int
	}{
		{"no token", "/console/", "", http.StatusUnauthorized},
		// The API server reports an error, which the filter answers with this status.
		{"a token that the API server does not know", "/console/", "invalid", http.StatusInternalServerError},
		{"no permission", "/console/", visitor, http.StatusForbidden},
		{"no permission, objects", "/console/objects/a/b/c", visitor, http.StatusForbidden},
		{"no permission, static files", "/console/static/style.css", visitor, http.StatusForbidden},
		{"permission", "/console/", operator, http.StatusOK},
		{"permission, controllers", "/console/controllers", operator, http.StatusOK},
		{"permission, no such object", "/console/objects/a/b/c", operator, http.StatusNotFound},
		{"no permission for the metrics", "/metrics", operator, http.StatusForbidden},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			await.Nil(t, apitest.Timeout, func() error {
				status, body, err := request(t, "https://"+address+tc.path, tc.token, "text/html")
				switch {
				case err != nil: // the server has not started
					return err
				case status != tc.want:
					return fmt.Errorf("got status %d, want %d: %s", status, tc.want, body)
				case tc.want != http.StatusOK && strings.Contains(body, "Nothing has been reconciled"):
					t.Errorf("status %d with the content of the page", status)
				case tc.want == http.StatusOK && !strings.Contains(body, "Nothing has been reconciled"):
					t.Errorf("unexpected page:\n%s", body)
				}
				return nil
			})
		})
	}
}

// grant creates a ClusterRole for a service account of the namespace of the test.
func grant(e *apitest.Env, name, account string, rules ...rbacv1.PolicyRule) {
	e.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.Namespace, Name: account}},
	}
	e.Must(e.Create(e.Context(), role))
	e.Cleanup(func() { e.Must(e.Delete(context.Background(), role)) })
	e.Must(e.Create(e.Context(), binding))
	e.Cleanup(func() { e.Must(e.Delete(context.Background(), binding)) })
}

// token returns a token of a new service account.
func token(e *apitest.Env, name string) string {
	e.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
	e.Must(e.Create(e.Context(), account))
	answer := &authenticationv1.TokenRequest{}
	e.Must(e.SubResource("token").Create(e.Context(), account, answer))
	return answer.Status.Token
}

func request(t *testing.T, url, token, accept string) (status int, body string, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Accept", accept)
	r.Host = "metrics.example" // as another machine has it: localhost may read the console of any server
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}
