// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi/apiserver"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// definitionOf returns the definition of a kind like Thing with another name.
func definitionOf(name string) string {
	return strings.NewReplacer(
		"things", name+"s", `"thing"`, `"`+name+`"`, `"Thing`, `"`+strings.ToUpper(name[:1])+name[1:], `"th"`, `"x`+name+`"`,
	).Replace(thingDefinition)
}

// statusCode returns the first word of a response.
func statusCode(response string) string {
	code, _, _ := strings.Cut(response, " ")
	return code
}

// Is a definition deleted with its objects, and are later definitions served?
func TestDefinitions_comeAndGo(t *testing.T) {
	var log strings.Builder
	s := start(t, apiserver.Options{DisableControllers: true, LogOutput: &log})
	api := endpointOf(t, s.RESTConfig(), "default")
	finalized := strings.Replace(aThing("b", `{"color":"red"}`), `"name"`, `"finalizers":["example.com/wait"],"name"`, 1)
	for _, x := range []struct {
		method, path, body, want string
	}{
		{"POST", definitionsPath, thingDefinition, "201"},
		{"POST", things, aThing("a", `{"color":"red"}`), "201"},
		{"POST", things, finalized, "201"},
		{"DELETE", definitionsPath + "/things.conformance.trueup.dev", "", "200"},
		{"GET", definitionsPath + "/things.conformance.trueup.dev", "", "200"},
		{"GET", things + "/a", "", "404"},
		{"GET", things + "/b", "", "200"},
		{"POST", things, aThing("c", `{"color":"red"}`), "403"},
		{"POST", definitionsPath, definitionOf("gear"), "201"}, // while the other one waits
		{"GET", "/apis/conformance.trueup.dev/v1/gears", "", "200"},
		{"PATCH", things + "/b", `{"metadata":{"finalizers":null}}`, "200"},
		{"GET", things + "/b", "", "404"},
		{"GET", things, "", "404"},
		{"GET", definitionsPath + "/things.conformance.trueup.dev", "", "404"},
		{"POST", definitionsPath, definitionOf("wheel"), "201"}, // after the other one has gone
		{"GET", "/apis/conformance.trueup.dev/v1/wheels", "", "200"},
		{"POST", definitionsPath, thingDefinition, "201"}, // the same again
		{"GET", things + "/a", "", "404"},
		{"POST", things, aThing("a", `{"color":"red"}`), "201"},
	} {
		got := api.send(t, exchange{
			method: x.method, path: x.path, body: x.body, contentType: contentTypeOf(x.method),
		})
		if statusCode(got) != x.want {
			t.Errorf("%s %s: %s, want the status %s", x.method, x.path, got, x.want)
		}
	}
	if log.Len() > 0 {
		t.Errorf("errors:\n%s", &log)
	}
}

func contentTypeOf(method string) string {
	if method == http.MethodPatch {
		return merge
	}
	return ""
}

// What do a watch, the conditions and discovery show while a definition is deleted?
func TestDefinitions_showTheirDeletion(t *testing.T) {
	s := start(t, apiserver.Options{DisableControllers: true})
	api := endpointOf(t, s.RESTConfig(), "default")
	c := definitionsClient(t, s.RESTConfig())
	for _, x := range []exchange{
		{method: "POST", path: definitionsPath, body: thingDefinition},
		{
			method: "POST", path: things,
			body: strings.Replace(aThing("a", `{"color":"red"}`), `"name"`, `"finalizers":["example.com/wait"],"name"`, 1),
		},
	} {
		if got := api.send(t, x); statusCode(got) != "201" {
			t.Fatal(got)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // events that do not come
	defer cancel()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKey{Name: "things.conformance.trueup.dev"}, crd); err != nil {
		t.Fatal(err)
	}
	definitions := watchFrom(ctx, t, c, &apiextensionsv1.CustomResourceDefinitionList{}, crd)
	instances := &unstructured.UnstructuredList{}
	instances.SetAPIVersion("conformance.trueup.dev/v1")
	instances.SetKind("ThingList")
	objects := watchFrom(ctx, t, c, instances, crd)
	if err := c.Delete(ctx, crd); err != nil {
		t.Fatal(err)
	}
	resources := api.send(t, exchange{method: "GET", path: "/apis/conformance.trueup.dev/v1"})
	if main, _, _ := strings.Cut(resources, "things/status"); strings.Contains(main, `"create"`) {
		t.Errorf("discovery while the definition is deleted:\n%s", resources)
	}
	release := exchange{method: "PATCH", path: things + "/a", contentType: merge, body: `{"metadata":{"finalizers":null}}`}
	if got := api.send(t, release); statusCode(got) != "200" {
		t.Fatal(got)
	}
	var got []string
	for len(got) < 3 {
		event := <-definitions.ResultChan()
		shown, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition)
		if !ok {
			t.Fatalf("event %v after %q", event, got)
		}
		last := shown.Status.Conditions[len(shown.Status.Conditions)-1]
		got = append(got, fmt.Sprint(event.Type, " ", shown.Finalizers, " ", last.Type, "=", last.Status, " ", last.Reason))
	}
	want := []string{
		"MODIFIED [customresourcecleanup.apiextensions.k8s.io] Terminating=True InstanceDeletionPending",
		"MODIFIED [customresourcecleanup.apiextensions.k8s.io] Terminating=True InstanceDeletionInProgress",
		// a deletion shows the last version that was stored
		"DELETED [customresourcecleanup.apiextensions.k8s.io] Terminating=True InstanceDeletionInProgress",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events of the definition (-want +got):\n%s", diff)
	}
	got = nil
	for event := range objects.ResultChan() { // until the kind is no longer served
		object, err := meta.Accessor(event.Object)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(event.Type, " ", object.GetName(), " ", object.GetDeletionTimestamp() != nil))
	}
	want = []string{"ADDED a false", "MODIFIED a true", "DELETED a true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events of the object (-want +got):\n%s", diff)
	}
}

// Do objects survive if the finalizer of their definition is removed by hand, as with a real server?
func TestDefinitions_whoseFinalizerIsRemoved(t *testing.T) {
	s := start(t, apiserver.Options{DisableControllers: true})
	api := endpointOf(t, s.RESTConfig(), "default")
	finalized := strings.Replace(aThing("a", `{"color":"red"}`), `"name"`, `"finalizers":["example.com/wait"],"name"`, 1)
	definition := definitionsPath + "/things.conformance.trueup.dev"
	for _, x := range []struct {
		method, path, body, want string
	}{
		{"POST", definitionsPath, thingDefinition, "201"},
		{"POST", things, finalized, "201"},
		{"DELETE", definition, "", "200"},
		{"PATCH", definition, `{"metadata":{"finalizers":null}}`, "200"},
		{"GET", definition, "", "404"},
		{"GET", things + "/a", "", "404"},
		{"POST", definitionsPath, definitionOf("wheel"), "201"},
		{"GET", "/apis/conformance.trueup.dev/v1/wheels", "", "200"},
		{"POST", definitionsPath, thingDefinition, "201"},
		{"GET", things + "/a", "", "200"},
		{"PATCH", things + "/a", `{"metadata":{"finalizers":null}}`, "200"},
		{"GET", things + "/a", "", "404"},
	} {
		got := api.send(t, exchange{
			method: x.method, path: x.path, body: x.body, contentType: contentTypeOf(x.method),
		})
		if statusCode(got) != x.want {
			t.Errorf("%s %s: %s, want the status %s", x.method, x.path, got, x.want)
		}
	}
}

// Is a definition refused that no longer has a version in which objects may be stored?
func TestDefinitions_keepStoredVersions(t *testing.T) {
	s := start(t, apiserver.Options{DisableControllers: true})
	api := endpointOf(t, s.RESTConfig(), "default")
	created := api.send(t, exchange{method: "POST", path: definitionsPath, body: thingDefinition})
	if statusCode(created) != "201" {
		t.Fatal(created)
	}
	got := api.send(t, exchange{
		method: "PATCH", path: definitionsPath + "/things.conformance.trueup.dev", contentType: "application/json-patch+json",
		body: `[{"op":"replace","path":"/spec/versions/0/name","value":"v2"}]`,
	})
	if statusCode(got) != "422" || !strings.Contains(got, "v1 was previously a storage version") {
		t.Errorf("response:\n%s", got)
	}
	if got := api.send(t, exchange{method: "GET", path: things}); statusCode(got) != "200" {
		t.Errorf("the kind is no longer served: %s", got)
	}
}

func definitionsClient(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// watchFrom watches the changes after the version of an object.
func watchFrom(
	ctx context.Context, t *testing.T, c client.WithWatch, list client.ObjectList, from client.Object,
) watch.Interface {
	t.Helper()
	w, err := c.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from.GetResourceVersion()}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// What happens to a second definition of one kind? It is stored and not served, until the first one no longer exists.
func TestDefinitions_ofOneKind(t *testing.T) {
	var log strings.Builder
	s := start(t, apiserver.Options{DisableControllers: true, LogOutput: &log})
	api := endpointOf(t, s.RESTConfig(), "default")
	second := strings.NewReplacer(
		"things", "others", `"thing"`, `"other"`, `"th"`, `"ot"`,
	).Replace(thingDefinition)
	const others = "/apis/conformance.trueup.dev/v1/namespaces/default/others"
	send := func(method, path, body, want string) {
		t.Helper()
		got := api.send(t, exchange{method: method, path: path, body: body, contentType: contentTypeOf(method)})
		if statusCode(got) != want {
			t.Errorf("%s %s: %s, want the status %s", method, path, got, want)
		}
	}
	c := definitionsClient(t, s.RESTConfig())
	conditions := func(name string) (texts []string) {
		t.Helper()
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name + ".conformance.trueup.dev"}, crd); err != nil {
			t.Fatal(err)
		}
		for _, condition := range crd.Status.Conditions {
			texts = append(texts, fmt.Sprintf(
				"%s %s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message,
			))
		}
		return append(texts, crd.Status.AcceptedNames.Plural+"/"+crd.Status.AcceptedNames.Kind)
	}
	accepted := []string{
		"NamesAccepted True NoConflicts: no conflicts found",
		"Established True InitialNamesAccepted: the initial names have been accepted",
	}

	send("POST", definitionsPath, thingDefinition, "201")
	send("POST", things, aThing("a", `{"color":"red"}`), "201")
	send("POST", definitionsPath, second, "201")
	send("GET", others, "", "404")
	send("GET", things+"/a", "", "200")
	if diff := cmp.Diff(append(slices.Clip(accepted), "things/Thing"), conditions("things")); diff != "" {
		t.Errorf("conditions of the first definition (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		`NamesAccepted False ListKindConflict: "ThingList" is already in use`,
		"Established False NotAccepted: not all names are accepted", "others/",
	}, conditions("others")); diff != "" {
		t.Errorf("conditions of the second definition (-want +got):\n%s", diff)
	}
	// Its deletion leaves the objects of the first one.
	send("DELETE", definitionsPath+"/others.conformance.trueup.dev", "", "200")
	send("GET", definitionsPath+"/others.conformance.trueup.dev", "", "404")
	send("GET", things+"/a", "", "200")
	send("POST", definitionsPath, second, "201")
	send("DELETE", definitionsPath+"/things.conformance.trueup.dev", "", "200")
	send("GET", things+"/a", "", "404")
	if diff := cmp.Diff(append(slices.Clip(accepted), "others/Thing"), conditions("others")); diff != "" {
		t.Errorf("conditions of the definition that is left (-want +got):\n%s", diff)
	}
	send("GET", others, "", "200")
	if log.Len() > 0 {
		t.Errorf("errors:\n%s", &log)
	}
}
