// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
)

// Without Realistic, subresources other than the status only seem to work.
func TestClient_executesSubResources(t *testing.T) {
	for _, executes := range []bool{false, true} {
		t.Run(fmt.Sprint(executes), func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: objectMeta("one")}
			c := newTestClient(t, pod.DeepCopy())
			c.executeSubResources = executes
			if err := c.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}); err != nil {
				t.Error(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); apierrs.IsNotFound(err) != executes {
				t.Errorf("error after the eviction = %v", err)
			}
			if err := c.SubResource("unknown").Update(t.Context(), pod); (err != nil) != executes {
				t.Errorf("error of an unknown subresource = %v", err)
			}
		})
	}
}

func TestClient_watch(t *testing.T) {
	c := newTestClient(t)
	watching, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("my-namespace"))
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: objectMeta("one")}); err != nil {
		t.Fatal(err)
	}
	if event := <-watching.ResultChan(); event.Type != "ADDED" || event.Object.(client.Object).GetName() != "one" {
		t.Errorf("event = %v", event)
	}
	c.PrependReactor("watch", "ConfigMapList", InduceFailure("watch", "ConfigMapList"))
	if _, err := c.Watch(t.Context(), &corev1.ConfigMapList{}); err == nil ||
		err.Error() != "inducing failure for watch ConfigMapList" {
		t.Errorf("error = %v", err)
	}
}

func TestClient_addGiven(t *testing.T) {
	c := newTestClient(t)
	duck := fixture.NewDuck("my-namespace", "one")
	duck.Spec.Fields = map[string]string{"a": "1"}
	c.AddGiven(duck, wrapped{&corev1.ConfigMap{ObjectMeta: objectMeta("one")}})
	var resource fixture.Resource
	var configMap corev1.ConfigMap
	key := client.ObjectKey{Namespace: "my-namespace", Name: "one"}
	if err := errors.Join(c.Get(t.Context(), key, &resource), c.Get(t.Context(), key, &configMap)); err != nil {
		t.Fatal(err)
	}
	if resource.Spec.Fields["a"] != "1" || resource.CreationTimestamp.UnixMilli() != 1000 ||
		configMap.CreationTimestamp.UnixMilli() != 1000 {
		t.Errorf("got %v and %v", resource, configMap)
	}
	if recorded := recorded(c); recorded != nil {
		t.Errorf("recorded %q", recorded)
	}

	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "given object [1]") ||
			!strings.Contains(text, "already exists") {
			t.Errorf("panic = %s", text)
		}
	}()
	c.AddGiven(&corev1.ConfigMap{ObjectMeta: objectMeta("two")}, &corev1.ConfigMap{ObjectMeta: objectMeta("one")})
}

// wrapped is an object that only wraps another one.
type wrapped struct{ client.Object }

func (w wrapped) DeepCopyObject() runtime.Object { return w.Object.DeepCopyObject() }
