// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/testkit/fixture"
)

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// owners lists the owners of fields, in the order of a server.
func owners(obj client.Object) []string {
	lines := []string{}
	for _, e := range obj.GetManagedFields() {
		lines = append(lines, strings.TrimSpace(strings.Join([]string{
			e.Manager, string(e.Operation), e.Subresource, e.Time.UTC().Format("05"), strings.ReplaceAll(
				e.FieldsV1.GetRawString(), `"`, "",
			),
		}, " ")))
	}
	return lines
}

// world is a live object that several managers write.
type world struct {
	*testing.T
	applier *apply.Applier
	live    client.Object
	clock   int
}

func newWorld(t *testing.T) *world {
	registry, err := kinds.NewRegistry(fixture.NewScheme())
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, applier: apply.New(registry)}
}

func (w *world) apply(manager, text string, force bool, subresource ...string) error {
	w.Helper()
	patch := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &patch.Object); err != nil {
		w.Fatal(err)
	}
	w.clock++
	result, err := w.applier.Apply(
		w.live, patch, manager, force, strings.Join(subresource, ""), start.Add(time.Duration(w.clock)*time.Second), nil,
	)
	if err == nil {
		w.live = result
		w.live.SetUID("1") // a server does this
	}
	return err
}

func (w *world) update(manager string, change func(client.Object), subresource ...string) {
	w.Helper()
	updated := w.live.DeepCopyObject().(client.Object)
	change(updated)
	w.clock++
	result, err := w.applier.Update(
		w.live, updated, manager, strings.Join(subresource, ""), start.Add(time.Duration(w.clock)*time.Second), nil,
	)
	if err != nil {
		w.Fatal(err)
	}
	w.live = result
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  template: {spec: {containers: [{name: web, image: "nginx:1"}]}}
`

func TestApplyCreatesAndOwns(t *testing.T) {
	w := newWorld(t)
	if err := w.apply("a", deployment, false); err != nil {
		t.Fatal(err)
	}
	d := w.live.(*appsv1.Deployment)
	if *d.Spec.Replicas != 2 || d.Spec.Template.Spec.Containers[0].Image != "nginx:1" {
		t.Errorf("created %+v", d.Spec)
	}
	want := []string{
		`a Apply  01 {f:spec:{f:replicas:{},f:template:{f:spec:{f:containers:{k:{\name\:\web\}:{.:{},f:image:{},f:name:{}}}}}}}`,
	}
	if diff := cmp.Diff(want, owners(w.live)); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

func TestConflicts(t *testing.T) {
	w := newWorld(t)
	if err := w.apply("a", deployment, false); err != nil {
		t.Fatal(err)
	}
	before := w.live.DeepCopyObject()
	other := strings.ReplaceAll(strings.ReplaceAll(deployment, "replicas: 2", "replicas: 3"), "nginx:1", "nginx:2")
	err := w.apply("b", other, false)
	if !apierrors.IsConflict(err) {
		t.Fatalf("error %v, want a conflict", err)
	}
	want := "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.replicas\n- " +
		".spec.template.spec.containers[name=\"web\"].image"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, w.live); diff != "" {
		t.Errorf("the live object has changed:\n%s", diff)
	}
	if err := w.apply("b", other, true); err != nil {
		t.Fatal(err)
	}
	wantOwners := []string{
		`a Apply  01 {f:spec:{f:template:{f:spec:{f:containers:{k:{\name\:\web\}:{.:{},f:name:{}}}}}}}`,
		`b Apply  03 {f:spec:{f:replicas:{},f:template:{f:spec:{f:containers:{k:{\name\:\web\}:{.:{},f:image:{},f:name:{}}}}}}}`,
	}
	if diff := cmp.Diff(wantOwners, owners(w.live)); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoLongerAppliedIsRemoved(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{deployment, strings.ReplaceAll(deployment, "replicas: 2", "paused: true")} {
		if err := w.apply("a", text, false); err != nil {
			t.Fatal(err)
		}
	}
	if d := w.live.(*appsv1.Deployment); d.Spec.Replicas != nil || !d.Spec.Paused {
		t.Errorf("spec %+v, want no replicas", d.Spec)
	}
	if err := w.apply(
		"a", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: default}", false,
	); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{}, owners(w.live)); diff != "" {
		t.Errorf("owners of nothing (-want +got):\n%s", diff)
	}
}

func TestUpdatesTakeFields(t *testing.T) {
	w := newWorld(t)
	if err := w.apply("a", deployment, false); err != nil {
		t.Fatal(err)
	}
	w.update("b", func(obj client.Object) {
		obj.(*appsv1.Deployment).Spec.Replicas = new(int32(5))
		obj.(*appsv1.Deployment).Status.Replicas = 7 // an update of the object does not write the status
	})
	w.update("c", func(obj client.Object) { obj.(*appsv1.Deployment).Status.Replicas = 8 }, "status")
	w.update("c", func(client.Object) {}, "status")
	want := []string{
		`a Apply  01 {f:spec:{f:template:{f:spec:{f:containers:{k:{\name\:\web\}:{.:{},f:image:{},f:name:{}}}}}}}`,
		`b Update  02 {f:spec:{f:replicas:{}}}`,
		`c Update status 03 {f:status:{f:replicas:{}}}`,
	}
	if diff := cmp.Diff(want, owners(w.live)); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

func TestFirstApplyToAnUpdatedObject(t *testing.T) {
	w := newWorld(t)
	w.live = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "c", Namespace: "default", UID: "1", Labels: map[string]string{"a": "b"},
		}, Data: map[string]string{"x": "1"},
	}
	if err := w.apply(
		"a", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: default}\ndata: {b: '2'}", false,
	); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`a Apply  01 {f:data:{f:b:{}}}`,
		`before-first-apply Update  01 {f:data:{.:{},f:x:{}},f:metadata:{f:labels:{.:{},f:a:{}}}}`,
	}
	if diff := cmp.Diff(want, owners(w.live)); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

func TestKindsWithoutADefinitionAreDeduced(t *testing.T) {
	w := newWorld(t)
	text := "apiVersion: fixture.trueup.dev/v1\nkind: Resource\nmetadata: {name: r, namespace: default}\nspec: {fields: " +
		"{a: b}}\nstatus: {fields: {c: d}}"
	if err := w.apply("a", text, false); err != nil {
		t.Fatal(err)
	}
	w.live.(*fixture.Resource).Status = fixture.ResourceStatus{} // a server does this
	if err := w.apply("s", text, false, "status"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`a Apply  01 {f:spec:{.:{},f:fields:{.:{},f:a:{}}}}`, `s Apply status 02 {f:status:{.:{},f:fields:{.:{},f:c:{}}}}`,
	}
	if diff := cmp.Diff(want, owners(w.live)); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if fields := w.live.(*fixture.Resource).Spec.Fields; fields["a"] != "b" {
		t.Errorf("fields %v", fields)
	}
}

// Content that a Go type cannot hold is returned unchanged: a schema may refuse it.
func TestContentThatATypeCannotHold(t *testing.T) {
	for spec, typed := range map[string]bool{
		"{fields: {a: b}}": true, "{}": true, "{fields: {a: 1}}": false, "text": false, "{unknown: x}": false,
		"{fields: {}}": false,
	} {
		w := newWorld(t)
		if err := w.apply(
			"a", "apiVersion: fixture.trueup.dev/v1\nkind: Resource\nmetadata: {name: r, namespace: default}\nspec: "+spec,
			false,
		); err != nil {
			t.Fatal(err)
		}
		if _, is := w.live.(*fixture.Resource); is != typed {
			t.Errorf("spec %s: applied is a %T", spec, w.live)
		}
	}
}

func TestErrorsOfTypesAreInOrder(t *testing.T) {
	text := deployment + "  unknown: x\n  another: {y: z}\n  strategy: [text]\n"
	want := "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): errors:\n" +
		"  .spec.another: field not declared in schema\n" +
		"  .spec.strategy: expected map, got &{[text]}\n" +
		"  .spec.unknown: field not declared in schema"
	for range 20 {
		err := newWorld(t).apply("a", text, false)
		if err == nil {
			t.Fatal("no error")
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Fatalf("error (-want +got):\n%s", diff)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	registry, err := kinds.NewRegistry(fixture.NewScheme())
	if err != nil {
		b.Fatal(err)
	}
	a := apply.New(registry)
	for _, c := range []struct{ name, text string }{
		{
			"ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: default}\ndata: {b: '2'}",
		}, {"Deployment", deployment},
	} {
		patch := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(c.text), &patch.Object); err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var live client.Object
			for b.Loop() {
				if live, err = a.Apply(live, patch, "a", false, "", start, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
