// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"encoding/json"
	"encoding/pem"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/sandbox"
)

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
