// SPDX-License-Identifier: Apache-2.0

package generations

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"go/format"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/usermodule"
	"trueup.dev/sandbox"
)

// An app in the form that the CLI of Grafana App SDK generates, with two versions, codecs, selectable fields, a
// conversion, a validator and a custom route. The guide's command, `trueup migrate`, does generated code and watchers;
// the files below after are the result by hand. The program then runs on a real API.
func TestMovedProgram_AppSDK(t *testing.T) {
	m := oldModule(t, "example.com/links", "testdata/moved/grafana-app-sdk/before")
	generated := m.Read(t, "pkg/generated/link/v2/link_object_gen.go")
	const command = "```sh\ngo run trueup.dev/cmd/trueup@latest migrate ./...\n"
	if !strings.Contains(read(t, "../../../docs/migration/grafana-app-sdk-generated.md"), command) {
		t.Fatalf("the guide has no block that begins with %s", command)
	}
	requireMigrated(t, m, "pkg/app/app.go")
	moved, err := format.Source(
		[]byte(strings.ReplaceAll(generated, "github.com/grafana/grafana-app-sdk/", "trueup.dev/")),
	)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the generated object", string(moved), m.Read(t, "pkg/generated/link/v2/link_object_gen.go"))
	writeFiles(t, m, "testdata/moved/grafana-app-sdk/after")
	m.Run(t, "go", "get", "trueup.dev")
	m.Run(t, "go", "mod", "tidy")
	m.Run(t, "go", "vet", "./pkg/...")
	m.Run(t, "go", "build", "-o", "operator", "./cmd/operator")
	runLinks(t, m)
}

// requireMigrated runs `trueup migrate` of the checkout. It requires that one line is left by hand, in a file.
func requireMigrated(t *testing.T, m *usermodule.Module, file string) {
	t.Helper()
	checkout, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	trueup := filepath.Join(t.TempDir(), "trueup")
	m.Run(t, "go", "build", "-C", checkout, "-o", trueup, "./cmd/trueup")
	out, err := m.Command(t, trueup, "migrate", "--force", "./...").Output() // nothing is committed
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("trueup migrate: %v, want the exit code 3\n%s", err, out)
	}
	_, left, _ := strings.Cut(string(out), "left by hand:\n")
	left, _, _ = strings.Cut(left, "\n\n")
	if !strings.HasPrefix(left, "  "+file+":") || strings.Contains(left, "\n") {
		t.Errorf("left by hand: want a line for %s, got:\n%s", file, left)
	}
}

func TestMain(m *testing.M) { apitest.Main(m) }

// runLinks runs the operator that was built, and uses what it serves.
func runLinks(t *testing.T, m *usermodule.Module) {
	e := apitest.New(t, nil, sandbox.TestOptions{
		Private: true, CRDs: []any{linkCRD()}, // the conversion is for all namespaces
	})
	hooks := e.Webhooks(t, sandbox.WebhookOptions{
		Configurations: []any{linkWebhook()}, Conversions: []string{"links.links.example.com"},
	})
	operator := m.Command(t, filepath.Join(m.Dir, "operator"))
	operator.Env = append(
		operator.Env, "KUBECONFIG="+e.KubeconfigPath(), "WEBHOOK_PORT="+strconv.Itoa(hooks.Port),
		"WEBHOOK_CERT_PATH="+filepath.Join(hooks.CertDir, "tls.crt"),
		"WEBHOOK_KEY_PATH="+filepath.Join(hooks.CertDir, "tls.key"),
	)
	var log strings.Builder
	operator.Stdout, operator.Stderr = &log, &log
	e.Must(operator.Start())
	stop := func() error {
		e.Must(operator.Process.Signal(os.Interrupt))
		return operator.Wait()
	}
	defer func() {
		if operator.ProcessState == nil {
			_ = stop()
		}
		if t.Failed() {
			t.Logf("the operator's output:\n%s", log.String())
		}
	}()
	e.Must(hooks.WaitUntilServed(t.Context()))

	link := newLink("v1", map[string]any{"url": "https://example.com"})
	e.Add(link)
	seen := newLink("v2", nil)
	e.Eventually(func() error { // written by the watcher, in the version of its Go type
		e.Must(e.Read(seen))
		if status, _, _ := unstructured.NestedString(seen.Object, "status", "seen"); status != "https://example.com" {
			return fmt.Errorf("the watcher has not written the status of %v", seen.Object)
		}
		return nil
	})
	if target, _, _ := unstructured.NestedString(seen.Object, "spec", "target"); target != "https://example.com" {
		t.Errorf("converted to %v", seen.Object)
	}
	empty := newLink("v2", map[string]any{"target": ""})
	empty.SetName("empty")
	empty.SetNamespace(e.Namespace)
	if err := e.Create(t.Context(), empty); !apierrs.IsForbidden(err) || !strings.Contains(err.Error(), "needs a target") {
		t.Errorf("a link without a target: %v", err)
	}

	url := fmt.Sprintf("%s/namespaces/%s/links/one/goto", hooks.URL("/apis/links.example.com/v2"), e.Namespace)
	if status, body := get(e, hooks.CABundle, url, ""); status != http.StatusUnauthorized {
		t.Errorf("the route without a token: %d %s", status, body)
	}
	token := linkToken(e)
	e.Eventually(func() error { // until the API server has loaded the role
		if status, body := get(e, hooks.CABundle, url, token); status != http.StatusOK ||
			strings.TrimSpace(body) != `{"target":"https://example.com"}` {
			return fmt.Errorf("the route answers %d %s", status, body)
		}
		return nil
	})
	e.Must(e.Delete(t.Context(), seen))
	e.WaitForDeletion(seen) // without its finalizer
	if err := stop(); err != nil {
		t.Errorf("the operator ended with %v", err)
	}
}

func newLink(version string, spec map[string]any) *unstructured.Unstructured {
	link := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "links.example.com/" + version, "kind": "Link", "metadata": map[string]any{"name": "one"},
	}}
	if spec != nil {
		link.Object["spec"] = spec
	}
	return link
}

func get(e *apitest.Env, authority []byte, url, token string) (status int, body string) {
	e.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}} //nolint:gosec // a test
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(e.Context(), http.MethodGet, url, http.NoBody)
	e.Must(err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	e.Must(err)
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	e.Must(err)
	return answer.StatusCode, string(data)
}

// linkToken returns the token of a user who may use the route.
func linkToken(e *apitest.Env) string {
	e.Helper()
	name := metav1.ObjectMeta{Name: "reader"}
	account := &corev1.ServiceAccount{ObjectMeta: name}
	e.Add(account, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"links.example.com"}, Resources: []string{"links/goto"}, Verbs: []string{"get"}},
	}}, &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.Namespace, Name: name.Name}},
	})
	request := &authenticationv1.TokenRequest{}
	e.Must(e.SubResource("token").Create(e.Context(), account, request))
	return request.Status.Token
}

func linkWebhook() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "links"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.links.example.com", SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1/validate")},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{
					admissionregistrationv1.Create, admissionregistrationv1.Update,
				},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"links.example.com"}, APIVersions: []string{"v2"}, Resources: []string{"links"},
				},
			}},
		}},
	}
}

func linkCRD() *apiextensionsv1.CustomResourceDefinition {
	version := func(name, field string, stored bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: stored,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						field: {Type: "string"}, "tags": {
							Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{
								Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"},
							},
						},
					}},
					"status": {Type: "object", XPreserveUnknownFields: new(true)},
				},
			}},
			SelectableFields: []apiextensionsv1.SelectableField{{JSONPath: ".spec." + field}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "links.links.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "links.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: "Link", Plural: "links", Singular: "link", ListKind: "LinkList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				version("v1", "url", false), version("v2", "target", true),
			},
		},
	}
}
