// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/app"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/sandbox"
	"trueup.dev/simple"
)

// The migrated app runs on a real API: codec, route, webhook, a kind without a handler.
func TestMigratedTracker(t *testing.T) {
	e := apitest.New(t, nil, sandbox.TestOptions{
		CRDs: []any{trackerCRD("Issue", "issues"), trackerCRD("Board", "boards")},
	})
	handled := &handledIssues{}
	webhooks, authority := e.WebhookOptions()
	health := e.FreePort()
	e.Go("the app", func(ctx context.Context) error {
		return RunTracker(ctx, operator.RunnerConfig{
			KubeConfig: *e.RESTConfig(),
			WebhookConfig: operator.RunnerWebhookConfig{
				Host: webhooks.Host, Port: webhooks.Port, TLSConfig: operator.RunnerTLSConfig{
					CertPath: filepath.Join(webhooks.CertDir, "tls.crt"), KeyPath: filepath.Join(webhooks.CertDir, "tls.key"),
				},
			},
			HealthConfig: operator.RunnerHealthConfig{Enabled: true, Host: "127.0.0.1", Port: health},
		}, TrackerConfig{Namespaces: []string{e.Namespace}, Watcher: handled.watcher()})
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}} //nolint:gosec // a test
	t.Cleanup(client.CloseIdleConnections)
	get := func(url, token string) (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			return "", err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusOK {
			return "", fmt.Errorf("%s: %s", answer.Status, body)
		}
		return string(body), err
	}
	e.Eventually(func() error {
		_, err := get(fmt.Sprintf("http://127.0.0.1:%d/readyz", health), "")
		return err
	})
	validateIssues(e, fmt.Sprintf("https://127.0.0.1:%d", webhooks.Port), authority)
	issue := newIssue("one", map[string]any{"title": "First", "labels": "bug,urgent"})
	e.Add(issue)
	e.Eventually(func() error { return handled.missing("one [bug urgent]") })
	_, manifest, _ := strings.Cut(readFile(t, "migration/grafana-app-sdk.md"), "```yaml migration-app-sdk-route-role\n")
	manifest, _, _ = strings.Cut(manifest, "```")
	role := &rbacv1.Role{}
	e.Must(yaml.UnmarshalStrict([]byte(manifest), role))
	token := tokenWith(e, role)
	namespace := fmt.Sprintf(
		"https://127.0.0.1:%d/apis/tracker.example.com/v1/namespaces/%s/", webhooks.Port, e.Namespace,
	)
	for path, want := range map[string]string{"summary": "1 issues", "issues/one/title": `{"title":"First"}` + "\n"} {
		e.Eventually(func() error { // until the API server has loaded the role
			if body, err := get(namespace+path, token); err != nil || body != want {
				return fmt.Errorf("the route %s answers %q, %w", path, body, err)
			}
			return nil
		})
	}
	routes, err := NewRouteClient(&rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", webhooks.Port), BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{CAData: authority},
	})
	e.Must(err)
	title, err := TitleOf(t.Context(), routes, resource.Identifier{Namespace: e.Namespace, Name: "one"})
	if err != nil || title != "First" {
		t.Errorf("TitleOf = %q, %v; want First", title, err)
	}
	_, err = TitleOf(t.Context(), routes, resource.Identifier{Namespace: e.Namespace, Name: "unknown"})
	if !apierrs.IsNotFound(err) {
		t.Errorf("TitleOf an issue that does not exist = %v, want NotFound", err)
	}
	e.Must(e.Delete(t.Context(), issue))
	e.WaitForDeletion(issue) // without its finalizer
}

// tokenWith returns a token of a service account in the namespace of the test that has a role.
func tokenWith(e *apitest.Env, role *rbacv1.Role) string {
	e.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
	e.Add(account, role, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.Namespace, Name: account.Name}},
	})
	request := &authenticationv1.TokenRequest{}
	e.Must(e.SubResource("token").Create(e.Context(), account, request))
	return request.Status.Token
}

func newIssue(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "tracker.example.com/v1", "kind": "Issue", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// validateIssues registers the paths for all kinds separately, as configurations of the App SDK do, and waits until the
// API server calls the app.
func validateIssues(e *apitest.Env, server string, authority []byte) {
	e.Helper()
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": e.Namespace}}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"tracker.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"issues"},
		},
	}}
	none := new(admissionregistrationv1.SideEffectClassNone)
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: new(server + path), CABundle: authority}
	}
	name := metav1.ObjectMeta{Name: "tracker." + e.Namespace}
	for _, configuration := range []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: name,
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "validate.tracker.example.com", ClientConfig: at("/validate"), Rules: rules, NamespaceSelector: selector,
				SideEffects: none, AdmissionReviewVersions: []string{"v1"},
			}},
		},
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: name,
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "mutate.tracker.example.com", ClientConfig: at("/mutate"), Rules: rules, NamespaceSelector: selector,
				SideEffects: none, AdmissionReviewVersions: []string{"v1"},
			}},
		},
	} {
		e.Must(e.Create(e.Context(), configuration))
		e.Cleanup(func() { e.Must(e.Delete(context.Background(), configuration)) })
	}
	e.Eventually(func() error {
		untitled := newIssue("untitled", map[string]any{"labels": "bug"})
		untitled.SetNamespace(e.Namespace)
		err := e.Create(e.Context(), untitled, client.DryRunAll)
		if !apierrs.IsForbidden(err) || !strings.Contains(err.Error(), "an issue needs a title") {
			return fmt.Errorf("an issue without a title is not denied at /validate: %w", err)
		}
		return nil
	})
}

// handledIssues records issues that were added.
type handledIssues struct {
	mu    sync.Mutex
	added []string
}

func (h *handledIssues) watcher() operator.ResourceWatcher {
	return &simple.WatcherFuncs[*Issue]{AddFunc: func(_ context.Context, issue *Issue) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.added = append(h.added, fmt.Sprint(issue.Name, " ", issue.Spec.Labels))
		return nil
	}}
}

func (h *handledIssues) missing(added string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.added, added) {
		return fmt.Errorf("the watcher received %q, want %s", h.added, added)
	}
	return nil
}

func trackerCRD(kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".tracker.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "tracker.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind, Plural: plural, Singular: strings.ToLower(kind), ListKind: kind + "List",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
			}},
		},
	}
}

// The config of the guide is valid. No cluster is needed before the app starts.
func TestMigratedKind(t *testing.T) {
	kind := resource.Kind{Schema: resource.NewSimpleSchema("", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{})}
	managed := append(
		OwnFinalizer(kind, &simple.Watcher{}, &simple.Reconciler{}), TenWorkers(WidgetKind(kind, &simple.Watcher{})),
	)
	for i, managed := range managed {
		_, err := simple.NewApp(simple.AppConfig{
			Name: "myapp", KubeConfig: rest.Config{Host: "127.0.0.1:1"}, MetricsBindAddress: "0", HealthBindAddress: "0",
			ManagedKinds: []simple.AppManagedKind{managed},
		})
		if err != nil { // no request is made before the app starts
			t.Errorf("kind %d: NewApp = %v", i, err)
		}
	}
}

// A manifest on disk is decoded. This replaces NewOnDiskManifest.
func TestMigratedManifestOnDisk(t *testing.T) {
	data, err := json.Marshal(TrackerManifest())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "manifest.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var manifest app.ManifestData
	if err := json.Unmarshal([]byte(readFile(t, file)), &manifest); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(TrackerManifest(), manifest); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(string(data), `"appName":"tracker"`) {
		t.Errorf("the manifest differs from the file: %s", data)
	}
}
