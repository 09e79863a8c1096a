// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/fixture"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/sandbox"
)

// gadgets is a definition with two versions that are converted.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.STRATEGY.example.com}
spec:
  group: STRATEGY.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: false
    selectableFields: [{jsonPath: .spec.size}]
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.seen}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, maximum: 100}
              color: {type: string, default: red}
          status: {type: object, properties: {seen: {type: integer}}}
  - name: v2
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              dimensions: {type: object, properties: {size: {type: integer, maximum: 50}}}
              color: {type: string}
              weight: {type: integer, default: 5}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
          status: {type: object, properties: {seen: {type: integer}, phase: {type: string}}}
  - name: v0
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
`

const weightAnnotation = "example.com/weight"

// convertGadget is the conversion of the webhook. Some colors make it fail.
func convertGadget(content map[string]any, to string) error {
	spec, _ := content["spec"].(map[string]any)
	switch spec["color"] {
	case "fail":
		return errors.New("no such color")
	case "rename":
		return unstructured.SetNestedField(content, "other", "metadata", "name")
	case "meta":
		_ = unstructured.SetNestedField(content, "x", "metadata", "labels", "added")
		_ = unstructured.SetNestedField(content, []any{"example.com/added"}, "metadata", "finalizers")
	case "label":
		_ = unstructured.SetNestedField(content, "not a label!", "metadata", "labels", "added")
	case "version":
		return nil
	}
	from := content["apiVersion"]
	content["apiVersion"] = to
	if spec == nil || from == to {
		return nil
	}
	if strings.HasSuffix(to, "/v2") {
		if size, found := spec["size"]; found {
			spec["dimensions"] = map[string]any{"size": size}
		}
		delete(spec, "size")
		if weight, found, _ := unstructured.NestedString(content, "metadata", "annotations", weightAnnotation); found {
			spec["weight"] = int64(len(weight))
			unstructured.RemoveNestedField(content, "metadata", "annotations", weightAnnotation)
		}
		return nil
	}
	if size, found, _ := unstructured.NestedFieldNoCopy(spec, "dimensions", "size"); found {
		spec["size"] = size
	}
	delete(spec, "dimensions")
	if weight, found := spec["weight"].(int64); found {
		delete(spec, "weight")
		return unstructured.SetNestedField(
			content, strings.Repeat("+", int(weight)), "metadata", "annotations", weightAnnotation,
		)
	}
	return nil
}

// convertReview is the webhook.
func convertReview(review *apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionReview, error) {
	response := &apiextensionsv1.ConversionResponse{
		UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess},
	}
	for _, raw := range review.Request.Objects {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(raw.Raw); err != nil {
			return nil, err
		}
		if err := convertGadget(obj.Object, review.Request.DesiredAPIVersion); err != nil {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
		}
		data, err := obj.MarshalJSON()
		if err != nil {
			return nil, err
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: data})
	}
	answer := &apiextensionsv1.ConversionReview{Response: response}
	answer.SetGroupVersionKind(review.GroupVersionKind())
	return answer, nil
}

// versionScripts are requests for objects of a definition with two versions. Each line has a verb, a version, a name
// and content.
var versionScripts = []string{
	`create v1 a {spec: {size: 3, other: 1}}
get v1 a {}
get v2 a {}
patch v2 a {spec: {weight: 7, tags: [x]}}
get v1 a {}
patch v1 a {spec: {size: 3}}
patch v1 a {spec: {size: 4}}
get v2 a {}
patch v2 a {spec: {weight: null}}
patch v2 a {spec: {weight: 5}}
patch v1 a {spec: {size: 101}}
patch v1 a {spec: {size: 60}}
patch v2 a {spec: {color: blue}}
patch v2 a {spec: {dimensions: {size: 70}}}
patch v1 a {metadata: {labels: {a: b}}}
patchstatus v1 a {status: {seen: 1, phase: X}}
patchstatus v2 a {status: {phase: Y}}
patch v2 a {spec: {dimensions: {size: 70}}}
get v1 a {}
scale v1 a {spec: {replicas: 8}}
get v2 a {}
patch v0 a {spec: {a: b}}
list v1 - {}
list v2 - {}
listsize v1 - 8
delete v1 a {}
get v2 a {}
create v2 a {spec: {dimensions: {size: 2}}}
get v1 a {}`,
	`create v2 b {metadata: {finalizers: [example.com/a]}, spec: {color: blue}}
delete v1 b {}
patch v1 b {metadata: {finalizers: null}}
get v2 b {}
create v1 b {}
create v2 b {}
dry v1 c {spec: {size: 1}}
dry v2 c {spec: {weight: 1}}
list v1 - {}`,
	`apply v1 d {spec: {size: 3}}
apply v2 d {spec: {weight: 7}}
get v1 d {}
apply v1 d {spec: {size: 4, color: blue}}
other v2 d {spec: {color: green}}
other v2 d {spec: {dimensions: {size: 9}}}
force v2 d {spec: {dimensions: {size: 9}}}
get v2 d {}
apply v1 d {}
get v2 d {}
patch v1 d {spec: {size: 5}}
get v2 d {}
apply v2 d {spec: {tags: [a, b]}}
other v2 d {spec: {tags: [c]}}
patch v1 d {metadata: {labels: {a: b}}}
get v1 d {}`,
	`create v1 e {spec: {size: 1}}
patch v2 e {spec: {tags: [a]}}
patch v1 e {spec: {color: blue}}
other v1 e {spec: {size: 1}}
get v2 e {}`,
	`create v2 h {spec: {color: meta}}
get v1 h {}
patch v1 h {spec: {size: 1}}
get v2 h {}`,
	`create v1 f {spec: {color: fail}}
create v2 f {spec: {color: fail}}
get v1 f {}
get v2 f {}
list v1 - {}
list v2 - {}
patch v1 f {spec: {color: blue}}
apply v1 f {spec: {color: blue}}
patchstatus v1 f {status: {seen: 1}}
delete v1 f {}
patch v2 f {spec: {color: blue}}
get v1 f {}`,
	`create v2 g {spec: {color: rename}}
get v1 g {}`,
	`create v2 i {spec: {color: label}}
get v1 i {}
create v1 i2 {spec: {color: label}}`,
	`create v2 j {spec: {color: version}}
get v1 j {}
create v1 j2 {spec: {color: version}}`,
}

// failingScripts is the index of the first script in which conversions fail.
const failingScripts = 5

// TestVersionsAreTheServers compares definitions with several versions with a real API server.
func TestVersionsAreTheServers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &apiextensionsv1.ConversionReview{}
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(data, review)
		}
		if err == nil {
			review, err = convertReview(review)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(webhook.Close)
	none, converted := gadgetDefinition(t, "none"), gadgetDefinition(t, "webhook")
	converted.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL:      new(webhook.URL + "/convert"),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}),
			},
		},
	}
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true}, CRDs: []any{none, converted},
	})
	real, err := client.NewWithWatch(env.RESTConfig(), client.Options{Scheme: fixture.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := kinds.NewRegistry(fixture.NewScheme(), none, converted)
	if err != nil {
		t.Fatal(err)
	}
	for _, strategy := range []string{"none", "webhook"} {
		for i, script := range versionScripts {
			t.Run(fmt.Sprintf("%s/%d", strategy, i), func(t *testing.T) {
				memory := memapi.New(memapi.Options{
					Registry: registry, Applier: apply.New(registry), Conversion: convertReview,
				}).Client("test")
				if err := memory.Create(t.Context(), &corev1.Namespace{
					ObjectMeta: metav1.ObjectMeta{Name: env.Namespace},
				}); err != nil {
					t.Fatal(err)
				}
				group := strategy + ".example.com"
				want := playVersions(t, real, group, env.Namespace, script)
				got := playVersions(t, memory, group, env.Namespace, script)
				lines := append(strings.Split(script, "\n"), "watch v2", "watch v1")
				if strategy == "webhook" && i >= failingScripts {
					lines = lines[:len(lines)-1] // a real server serves no watch of v1 until all objects can be converted
				}
				for n, line := range lines {
					if diff := cmp.Diff(want[n], got[n]); diff != "" {
						t.Errorf("%s (-real +memory):\n%s", line, diff)
					}
				}
			})
		}
	}
}

func gadgetDefinition(t testing.TB, strategy string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(gadgets, "STRATEGY", strategy)), crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// playVersions executes a script. It returns the result of each line, and what watches of both versions have seen.
func playVersions(t *testing.T, c client.WithWatch, group, namespace, script string) []any {
	t.Helper()
	var results []any
	start := &unstructured.UnstructuredList{}
	start.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v2", Kind: "GadgetList"})
	if err := c.List(t.Context(), start, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	watches := map[string]watch.Interface{}
	for _, version := range []string{"v1", "v2"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: "GadgetList"})
		w, err := c.Watch(t.Context(), list, &client.ListOptions{
			Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: start.GetResourceVersion()},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		watches[version] = w
	}
	p := &versionPlayer{T: t, c: c, group: group, namespace: namespace, versions: map[string]string{}}
	for line := range strings.Lines(script) {
		results = append(results, p.play(line))
	}
	for _, version := range []string{"v2", "v1"} {
		results = append(results, p.seen(watches[version]))
	}
	for _, name := range p.created {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v2", Kind: "Gadget"})
		obj.SetNamespace(namespace)
		obj.SetName(name)
		_ = c.Delete(t.Context(), obj)
	}
	return results
}

// versionPlayer executes the lines of a script.
type versionPlayer struct {
	*testing.T

	c                client.WithWatch
	group, namespace string
	versions         map[string]string // the last resource versions by name
	created          []string
	applied          bool
}

func (p *versionPlayer) play(line string) any {
	p.Helper()
	fields := strings.SplitN(strings.TrimSpace(line), " ", 4)
	verb, name := fields[0], fields[2]
	kind := schema.GroupVersionKind{Group: p.group, Version: fields[1], Kind: "Gadget"}
	obj := &unstructured.Unstructured{}
	if strings.HasPrefix(verb, "list") {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind("GadgetList"))
		options := []client.ListOption{client.InNamespace(p.namespace)}
		if verb == "listsize" {
			options = append(options, client.MatchingFields{"spec.size": fields[3]})
		}
		err := p.c.List(p.Context(), list, options...)
		var items []any
		for i := range list.Items {
			items = append(items, p.shown(&list.Items[i]))
		}
		return []any{p.text(err), items}
	}
	if err := yaml.Unmarshal([]byte(fields[3]), &obj.Object); err != nil {
		p.Fatal(err)
	}
	patch, err := json.Marshal(obj.Object)
	if err != nil {
		p.Fatal(err)
	}
	obj.SetGroupVersionKind(kind)
	obj.SetNamespace(p.namespace)
	obj.SetName(name)
	raw, owner := client.RawPatch(types.MergePatchType, patch), client.FieldOwner(verb)
	switch verb {
	case "create":
		err = p.c.Create(p.Context(), obj, owner)
		p.created = append(p.created, name)
	case "dry":
		err = p.c.Create(p.Context(), obj, owner, client.DryRunAll)
	case "get":
		err = p.c.Get(p.Context(), client.ObjectKeyFromObject(obj), obj)
	case "patch":
		err = p.c.Patch(p.Context(), obj, raw, owner)
	case "patchstatus":
		err = p.c.Status().Patch(p.Context(), obj, raw, owner)
	case "scale":
		scale := &unstructured.Unstructured{}
		scale.SetGroupVersionKind(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
		if err = p.c.SubResource("scale").Patch(
			p.Context(), obj, raw, owner, client.WithSubResourceBody(scale),
		); err == nil {
			err = p.c.Get(p.Context(), client.ObjectKeyFromObject(obj), obj)
		}
	case "apply", "other":
		err = p.c.Apply(p.Context(), client.ApplyConfigurationFromUnstructured(obj), owner)
		p.applied = p.applied || err == nil
		p.created = append(p.created, name)
	case "force":
		err = p.c.Apply(
			p.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("other"), client.ForceOwnership,
		)
	case "delete":
		err = p.c.Delete(p.Context(), obj)
		return p.text(err)
	default:
		p.Fatalf("unknown verb %s", verb)
	}
	if err != nil {
		return p.text(err)
	}
	changed := obj.GetResourceVersion() != p.versions[name]
	p.versions[name] = obj.GetResourceVersion()
	return map[string]any{"changed": changed, "object": p.shown(obj)}
}

func (p *versionPlayer) text(err error) string {
	if err == nil {
		return ""
	}
	text := strings.ReplaceAll(err.Error(), p.namespace, "NAMESPACE")
	text = regexp.MustCompile(`revision=\d+`).ReplaceAllString(text, "revision=N")
	// a real server names one of the fields, in random order
	return regexp.MustCompile(`[.a-z]+: field not declared`).ReplaceAllString(text, "FIELD: field not declared")
}

// seen returns the events of a watch. It waits a short time for each.
func (p *versionPlayer) seen(w watch.Interface) []any {
	p.Helper()
	var events []any
	for {
		select {
		case e, ok := <-w.ResultChan():
			obj, isObject := e.Object.(*unstructured.Unstructured)
			switch {
			case !ok:
				return append(events, "end")
			case isObject:
				obj.SetManagedFields(nil) // in memory they are kept only when they are needed
				events = append(events, []any{e.Type, p.shown(obj)})
			default:
				events = append(events, []any{e.Type, e.Object.(*metav1.Status).Message})
			}
		case <-time.After(300 * time.Millisecond):
			return events
		}
	}
}

// shown returns an object without the fields that differ between servers.
func (p *versionPlayer) shown(obj *unstructured.Unstructured) any {
	obj = obj.DeepCopy()
	uid := string(obj.GetUID())
	unstructured.RemoveNestedField(obj.Object, "metadata", "resourceVersion")
	unstructured.RemoveNestedField(obj.Object, "metadata", "creationTimestamp")
	if obj.GetDeletionTimestamp() != nil {
		_ = unstructured.SetNestedField(obj.Object, "TIME", "metadata", "deletionTimestamp")
	}
	fields := obj.GetManagedFields()
	for i := range fields {
		fields[i].Time = nil
	}
	slices.SortStableFunc(fields, func(a, b metav1.ManagedFieldsEntry) int {
		return strings.Compare(
			strings.Join([]string{a.Manager, string(a.Operation), a.Subresource, a.APIVersion}, " "),
			strings.Join([]string{b.Manager, string(b.Operation), b.Subresource, b.APIVersion}, " "),
		)
	})
	if obj.SetManagedFields(fields); !p.applied { // in memory they are kept only when they are needed
		obj.SetManagedFields(nil)
	}
	data, err := json.Marshal(obj)
	if err != nil {
		p.Fatal(err)
	}
	var content any
	text := strings.ReplaceAll(strings.ReplaceAll(string(data), uid, "UID"), p.namespace, "NAMESPACE")
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		p.Fatal(err)
	}
	return content
}
