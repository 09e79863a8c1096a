// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestChangeText checks what a line says about a write.
func TestChangeText(t *testing.T) {
	pod := func(change func(*corev1.Pod)) map[string]any {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "a", ResourceVersion: time.Now().String(), Finalizers: []string{"example.com/a"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: time.Now().String()}},
		}}
		p.Spec.Containers = []corev1.Container{{Name: "first", Image: "a:1"}, {Name: "second", Image: "b:1"}}
		p.Status.Conditions = []corev1.PodCondition{
			{Type: "Initialized", Status: "True"}, {Type: "Ready", Status: "False", Reason: "Starting"},
		}
		change(p)
		return ContentOf(p)
	}
	now := metav1.NewTime(time.Unix(1_700_000_000, 0))
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"nothing but metadata of the API server": {func(p *corev1.Pod) { p.Generation = 7 }, ""},
		"a condition by its type": {func(p *corev1.Pod) {
			p.Status.Conditions[1].Status, p.Status.Conditions[1].Reason = "True", "Started"
			p.Status.Conditions[1].LastTransitionTime = now
		}, ": status.conditions[Ready] True (Started)"},
		"the order of conditions": {func(p *corev1.Pod) { slices.Reverse(p.Status.Conditions) }, ""},
		"a condition less": {func(p *corev1.Pod) {
			p.Status.Conditions = p.Status.Conditions[:1]
		}, ": no status.conditions[Ready]"},
		"a time with something else": {func(p *corev1.Pod) {
			p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
		}, `: status.phase "Running"`},
		"nothing but a time": {func(p *corev1.Pod) {
			p.Status.Conditions[1].LastTransitionTime = now
		}, ": nothing but status.conditions[Ready].lastTransitionTime"},
		"a container by its name": {func(p *corev1.Pod) {
			p.Spec.Containers[1].Image = "b:2"
		}, `: spec.containers[second].image "b:2"`},
		"a finalizer": {func(p *corev1.Pod) { p.Finalizers = nil }, ": no finalizers example.com/a"},
		"a deletion":  {func(p *corev1.Pod) { p.DeletionTimestamp = &now }, ": deletionTimestamp is set"},
		"many changes": {func(p *corev1.Pod) {
			p.Labels = map[string]string{"a": "1", "b": "2", "example.com/c": "3"}
		}, `: labels.a "1", labels.b "2", 1 more`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ChangeText(pod(func(*corev1.Pod) {}), pod(c.change), false)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	before := &corev1.Secret{Data: map[string][]byte{"value": []byte("secret")}}
	after := &corev1.Secret{Data: map[string][]byte{"value": []byte("very secret")}}
	if got := ChangeText(ContentOf(before), ContentOf(after), true); got != ": data.value …" {
		t.Errorf("a secret: got %q", got)
	}
}

// TestContentOfUntypedObjects checks that the text of a timeline does not change objects of the API server.
func TestContentOfUntypedObjects(t *testing.T) {
	metadata := map[string]any{"name": "a", "resourceVersion": "1"}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	if content := ContentOf(u); content["metadata"].(map[string]any)["resourceVersion"] != nil {
		t.Errorf("the content has a resource version: %v", content)
	}
	if u.GetResourceVersion() != "1" {
		t.Errorf("the object was changed: %v", u.Object)
	}
}
