// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/resource"
	"trueup.dev/simple"
)

// Medal is a kind that is stored in v1 and handled in v2.
type (
	MedalSpec struct {
		Metal string `json:"metal"`
	}
	Medal     = resource.TypedSpecObject[MedalSpec]
	MedalList = resource.TypedList[Medal]
)

// A Service routes no requests to an app that is not ready. If readiness depended on an informer that needs the app's
// own conversion, both would wait forever.
func TestAppIsReadyForItsOwnConversion(t *testing.T) {
	medals := crd("Medal", "medals", "v1", "v2")
	medals.Spec.Conversion = (&simple.App{}).CustomResourceConversion(admissionregistrationv1.WebhookClientConfig{
		URL: new("https://127.0.0.1:1"),
	})
	e := newEnv(t, medals)
	v2 := resource.Kind{Schema: resource.NewSimpleSchema(group, "v2", &Medal{}, &MedalList{}, resource.WithKind("Medal"))}
	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Medal"})
	old.SetName("old")
	e.Add(old)

	var calls record
	config := e.config("medals")
	config.HealthBindAddress = address(e.FreePort())
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: v2, Watcher: calls.watcher(), ReconcileOptions: simple.ReconcileOptions{UsePlain: true}},
	}
	config.Converters = map[schema.GroupKind]simple.Converter{v2.GroupKind(): simple.ConverterFunc(func(
		obj simple.RawKind, target string,
	) ([]byte, error) {
		return []byte(strings.Replace(string(obj.Raw), obj.APIVersion, target, 1)), nil
	})}
	at := e.serveWebhooks(&config)
	made := e.make(config)
	e.run(made)
	e.Eventually(func() error {
		_, err := get("http://" + config.HealthBindAddress + "/readyz")
		return err
	})
	if calls := calls.all(); len(calls) > 0 {
		t.Errorf("calls = %q before the objects can be read", calls)
	}
	// A ready app receives conversion requests.
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: medals.Name}}
	e.Eventually(func() error {
		if err := e.Get(e.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
			return err
		}
		definition.Spec.Conversion = made.CustomResourceConversion(at)
		return e.Update(e.Context(), definition)
	})
	e.Eventually(func() error { return calls.has("add old") })
	e.Must(e.Delete(e.Context(), old))
}
