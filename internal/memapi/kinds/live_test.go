// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/sandbox"
)

// TestKindsAreTheServers writes objects of many kinds to a real API server and to one in memory, which must return
// equal objects and errors. The files contain documents separated by lines of "---": an object to create, followed by
// merge patches for it. A patch with only "status:" is sent to the status subresource.
func TestKindsAreTheServers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	scheme := fixture.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true},
	})
	real, err := client.New(env.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	registry := newRegistry(t)
	for _, file := range files {
		data, err := os.ReadFile("testdata/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for i, scenario := range strings.Split(string(data), "\n===\n") {
			t.Run(fmt.Sprintf("%s/%d", strings.TrimSuffix(file.Name(), ".yaml"), i), func(t *testing.T) {
				memory := memapi.New(memapi.Options{Registry: registry, Applier: apply.New(registry)}).Client("test")
				if err := memory.Create(t.Context(), &corev1.Namespace{
					ObjectMeta: metav1.ObjectMeta{Name: env.Namespace},
				}); err != nil {
					t.Fatal(err)
				}
				want, got := play(t, real, env.Namespace, scenario), play(t, memory, env.Namespace, scenario)
				for i := range min(len(want), len(got)) { // a different result of the first ends the scenario
					if diff := cmp.Diff(want[i], got[i]); diff != "" {
						t.Errorf("step %d (-real +memory):\n%s", i, diff)
					}
				}
			})
		}
	}
}

// TestTableIsTheServers compares the table of kinds with the discovery of a real API server.
func TestTableIsTheServers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true},
		Private: true, // no definitions of other packages
	})
	d, err := discovery.NewDiscoveryClientForConfig(env.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	registry := newRegistry(t)
	type row struct {
		Plural                    string
		Namespaced, Status, Scale bool
	}
	want, got := map[schema.GroupVersionKind]row{}, map[schema.GroupVersionKind]row{}
	subresources := map[string]bool{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			subresources[list.GroupVersion+"/"+r.Name] = true
		}
	}
	for _, list := range lists {
		for _, r := range list.APIResources {
			gvk := schema.FromAPIVersionAndKind(list.GroupVersion, r.Kind)
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "update") || gvk.Group == "apiregistration.k8s.io" {
				continue // not stored, or served by an aggregated API server
			}
			resource := list.GroupVersion + "/" + r.Name
			want[gvk] = row{
				Plural: r.Name, Namespaced: r.Namespaced, Status: subresources[resource+"/status"],
				Scale: subresources[resource+"/scale"],
			}
			if k, ok := registry.For(gvk); ok {
				got[gvk] = row{Plural: k.Plural, Namespaced: k.Namespaced, Status: k.Status, Scale: k.Scale != nil}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-real +known):\n%s", diff)
	}
	if len(want) < 50 {
		t.Errorf("only %d kinds", len(want))
	}
}

// play executes the documents of a scenario and returns the results.
func play(t *testing.T, c client.Client, namespace, scenario string) []any {
	t.Helper()
	var results []any
	obj := &unstructured.Unstructured{}
	for i, document := range strings.Split(scenario, "\n---\n") {
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		var target client.Object
		if i == 0 {
			if err := obj.UnmarshalJSON(data); err != nil {
				t.Fatal(err)
			}
			if namespaced, err := c.IsObjectNamespaced(obj); err != nil {
				t.Fatal(err)
			} else if namespaced {
				obj.SetNamespace(namespace)
			}
			obj.SetName(obj.GetName())
			typed, err := c.Scheme().New(obj.GroupVersionKind())
			if err != nil {
				t.Fatal(err)
			}
			target = typed.(client.Object)
			full, _ := obj.MarshalJSON()
			if err := json.Unmarshal(full, target); err != nil {
				t.Fatal(err)
			}
			err = c.Create(t.Context(), target)
			results = append(results, result(target, err))
			if err != nil {
				break
			}
			t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), target) })
			continue
		}
		typed, err := c.Scheme().New(obj.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		target = typed.(client.Object)
		target.SetName(obj.GetName())
		target.SetNamespace(obj.GetNamespace())
		patch := client.RawPatch(types.MergePatchType, data)
		if strings.HasPrefix(strings.TrimSpace(document), "status:") {
			err = c.Status().Patch(t.Context(), target, patch)
		} else {
			err = c.Patch(t.Context(), target, patch)
		}
		results = append(results, result(target, err))
	}
	return results
}

// result returns an object or error without the parts that differ between servers.
func result(obj client.Object, err error) any {
	if err != nil {
		return "error: " + comparable(err)
	}
	uid := string(obj.GetUID())
	obj.SetManagedFields(nil)
	obj.SetResourceVersion("")
	obj.SetCreationTimestamp(metav1.Time{})
	obj.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind().GroupVersion().WithKind(""))
	if s, ok := obj.(*corev1.Service); ok {
		if s.Spec.ClusterIP != "" && s.Spec.ClusterIP != "None" {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "IP", []string{"IP"}
		}
		for i := range s.Spec.Ports {
			if s.Spec.Ports[i].NodePort != 0 {
				s.Spec.Ports[i].NodePort = 30000
			}
		}
		if s.Spec.HealthCheckNodePort != 0 {
			s.Spec.HealthCheckNodePort = 30000
		}
	}
	obj.SetFinalizers(nil) // an admission plugin adds them to volumes and claims
	if p, ok := obj.(*corev1.Pod); ok {
		for i := range p.Status.Conditions {
			p.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
	}
	if v, ok := obj.(*corev1.PersistentVolume); ok {
		v.Status.LastPhaseTransitionTime = nil
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return err.Error()
	}
	var content map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), uid, "UID")), &content); err != nil {
		return err.Error()
	}
	return content
}

// comparable returns the text of an error without the structures in it, which a real server prints as internal types.
func comparable(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n@@")
	text = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(text, "UID")
	return regexp.MustCompile(`(spec\.template(\.spec)?): Invalid value: .*: field is immutable`).
		ReplaceAllString(text, "$1: field is immutable")
}
