// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/app"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/sandbox"
	"trueup.dev/simple"
)

// The migrated app runs on a real API: codec, route, webhook, a kind without a handler.
func TestMigratedTracker(t *testing.T) {
	env := sandbox.ForTest(t, sandbox.TestOptions{
		CRDs: []any{trackerCRD("Issue", "issues"), trackerCRD("Board", "boards")},
	})
	handled := &handledIssues{}
	certs := newCertificate(t)
	routes, webhooks, health := freePort(t), freePort(t), freePort(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- RunTracker(ctx, operator.RunnerConfig{
			KubeConfig: *env.RESTConfig(),
			WebhookConfig: operator.RunnerWebhookConfig{Host: "127.0.0.1", Port: webhooks, TLSConfig: operator.RunnerTLSConfig{
				CertPath: filepath.Join(certs, "tls.crt"), KeyPath: filepath.Join(certs, "tls.key"),
			}},
			HealthConfig: operator.RunnerHealthConfig{Enabled: true, Host: "127.0.0.1", Port: health},
		}, TrackerConfig{
			RoutesAddress: fmt.Sprintf("127.0.0.1:%d", routes), Namespaces: []string{env.Namespace}, Watcher: handled.watcher(),
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	get := func(port int, path string) (string, error) {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
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
	eventually(t, "the app is ready", func(context.Context) (bool, error) {
		_, err := get(health, "/readyz")
		return err == nil, nil
	})
	api, err := client.New(env.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	validateIssues(t, env, api, fmt.Sprintf("https://127.0.0.1:%d", webhooks), certs)
	issue := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "tracker.example.com/v1", "kind": "Issue", "metadata": map[string]any{
			"namespace": env.Namespace, "name": "one",
		},
		"spec": map[string]any{"title": "First", "labels": "bug,urgent"},
	}}
	if err := api.Create(t.Context(), issue); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the watcher gets what the codec has read", func(context.Context) (bool, error) {
		return handled.has("one [bug urgent]"), nil
	})
	if body, err := get(routes, "/summary/"+env.Namespace); err != nil || body != "1 issues" {
		t.Errorf("the route answers %q, %v", body, err)
	}
	if err := api.Delete(t.Context(), issue); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its finalizer is cleared", func(ctx context.Context) (bool, error) {
		err := api.Get(ctx, client.ObjectKeyFromObject(issue), issue)
		return err != nil, client.IgnoreNotFound(err)
	})
}

// validateIssues registers the paths for all kinds, as configurations of the App SDK have them, each by itself, and
// returns when the API server asks the app.
func validateIssues(t *testing.T, env *sandbox.Env, api client.Client, server, certs string) {
	t.Helper()
	authority := []byte(readFile(t, filepath.Join(certs, "tls.crt")))
	here := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": env.Namespace}}
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
	name := metav1.ObjectMeta{Name: "tracker." + env.Namespace}
	for _, configuration := range []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: name,
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "validate.tracker.example.com", ClientConfig: at("/validate"), Rules: rules, NamespaceSelector: here,
				SideEffects: none, AdmissionReviewVersions: []string{"v1"},
			}},
		},
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: name,
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "mutate.tracker.example.com", ClientConfig: at("/mutate"), Rules: rules, NamespaceSelector: here,
				SideEffects: none, AdmissionReviewVersions: []string{"v1"},
			}},
		},
	} {
		if err := api.Create(t.Context(), configuration); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := api.Delete(context.Background(), configuration); err != nil {
				t.Error(err)
			}
		})
	}
	untitled := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "tracker.example.com/v1", "kind": "Issue", "metadata": map[string]any{
			"namespace": env.Namespace, "name": "untitled",
		},
		"spec": map[string]any{"labels": "bug"},
	}}
	eventually(t, "an issue without a title is denied at /validate", func(ctx context.Context) (bool, error) {
		err := api.Create(ctx, untitled.DeepCopy(), client.DryRunAll)
		return apierrs.IsForbidden(err) && strings.Contains(err.Error(), "an issue needs a title"), nil
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

func (h *handledIssues) has(added string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.added, added)
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

func newCertificate(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.ParseIP("127.0.0.1")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
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
