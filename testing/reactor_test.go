// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
)

func TestInduceFailure(t *testing.T) {
	custom := errors.New("custom")
	get := func(ctx context.Context, c client.Client) error {
		return c.Get(ctx, client.ObjectKey{Namespace: "my-namespace", Name: "one"}, &corev1.ConfigMap{})
	}
	update := func(ctx context.Context, c client.Client) error {
		return c.Update(ctx, &corev1.ConfigMap{ObjectMeta: objectMeta("one")})
	}
	statusUpdate := func(ctx context.Context, c client.Client) error {
		return c.Status().Update(ctx, &fixture.Resource{ObjectMeta: objectMeta("one")})
	}
	list := func(ctx context.Context, c client.Client) error {
		return c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("my-namespace"))
	}
	apply := func(ctx context.Context, c client.Client) error {
		return c.Apply(ctx, corev1apply.ConfigMap("one", "my-namespace"), client.FieldOwner("me"))
	}
	evict := func(ctx context.Context, c client.Client) error {
		return c.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: objectMeta("one")}, &policyv1.Eviction{})
	}
	tests := map[string]struct {
		reactor ReactionFunc
		call    func(ctx context.Context, c client.Client) error
		want    string
	}{
		"verb and kind": {InduceFailure("update", "ConfigMap"), update, "inducing failure for update ConfigMap"},
		"in any case":   {InduceFailure("UPDATE", "configmap"), update, "inducing failure for update ConfigMap"},
		"list": {
			InduceFailure("list", "ConfigMapList"), list, "inducing failure for list ConfigMapList",
		},
		"apply":          {InduceFailure("apply", "ConfigMap"), apply, "inducing failure for apply ConfigMap"},
		"other verb":     {InduceFailure("create", "ConfigMap"), update, ""},
		"other kind":     {InduceFailure("update", "Secret"), update, ""},
		"kind of a list": {InduceFailure("list", "ConfigMap"), list, ""},
		"error": {
			InduceFailure("update", "ConfigMap", InduceFailureOpts{Error: custom}), update, "custom",
		},
		"namespace": {
			InduceFailure("update", "ConfigMap", InduceFailureOpts{Namespace: "my-namespace"}), update,
			"inducing failure for update ConfigMap",
		},
		"other namespace": {
			InduceFailure("update", "ConfigMap", InduceFailureOpts{Namespace: "other"}), update, "",
		},
		"name of an object": {
			InduceFailure("update", "ConfigMap", InduceFailureOpts{Name: "one"}), update,
			"inducing failure for update ConfigMap",
		},
		"other name of an object": {InduceFailure("update", "ConfigMap", InduceFailureOpts{Name: "other"}), update, ""},
		"name": {
			InduceFailure("get", "ConfigMap", InduceFailureOpts{Name: "one"}), get, "inducing failure for get ConfigMap",
		},
		"other name": {InduceFailure("get", "ConfigMap", InduceFailureOpts{Name: "other"}), get, ""},
		"name of what is applied": {
			InduceFailure("apply", "ConfigMap", InduceFailureOpts{Name: "one"}), apply, "inducing failure for apply ConfigMap",
		},
		"other name than applied": {InduceFailure("apply", "ConfigMap", InduceFailureOpts{Name: "other"}), apply, ""},
		"name, for a list": {
			InduceFailure("list", "ConfigMapList", InduceFailureOpts{Name: "one"}), list,
			"inducing failure for list ConfigMapList",
		},
		"any subresource": {
			InduceFailure("update", "Resource"), statusUpdate, "inducing failure for update Resource",
		},
		"subresource": {
			InduceFailure("update", "Resource", InduceFailureOpts{SubResource: "status"}), statusUpdate,
			"inducing failure for update Resource",
		},
		"subresource in the kind": {
			InduceFailure("update", "Resource/status"), statusUpdate, "inducing failure for update Resource",
		},
		"other subresource": {
			InduceFailure("update", "Resource", InduceFailureOpts{SubResource: "scale"}), statusUpdate, "",
		},
		"subresource, not the main": {
			InduceFailure("update", "ConfigMap", InduceFailureOpts{SubResource: "status"}), update, "",
		},
		"owner of a subresource": {
			InduceFailure("create", "Pod", InduceFailureOpts{Name: "one"}), evict, "inducing failure for create Pod",
		},
		"other owner": {InduceFailure("create", "Pod", InduceFailureOpts{Name: "other"}), evict, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newTestClient(t, &corev1.ConfigMap{ObjectMeta: objectMeta("one")}, &fixture.Resource{
				ObjectMeta: objectMeta("one"),
			})
			c.PrependReactor("*", "*", test.reactor)
			got := ""
			if err := test.call(t.Context(), c); err != nil && !apierrs.IsConflict(err) {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("error = %q, want %q", got, test.want)
			}
		})
	}
}

func TestInduceFailure_severalOptions(t *testing.T) {
	defer func() {
		if text := fmt.Sprint(recover()); text != "InduceFailure takes one InduceFailureOpts at most, got 2" {
			t.Errorf("panic = %s", text)
		}
	}()
	InduceFailure("get", "ConfigMap", InduceFailureOpts{}, InduceFailureOpts{})
}

// The calls of the verb for the kind count, and no others.
func TestCalledAtMostTimes(t *testing.T) {
	c := newTestClient(t, &corev1.ConfigMap{ObjectMeta: objectMeta("one")})
	c.PrependReactor("*", "*", CalledAtMostTimes("get", "ConfigMap", 2))
	var got []string
	for range 4 {
		if err := c.List(t.Context(), &corev1.ConfigMapList{}); err != nil {
			t.Errorf("list: %v", err)
		}
		got = append(
			got, fmt.Sprint(c.Get(t.Context(), client.ObjectKey{Namespace: "my-namespace", Name: "one"}, &corev1.ConfigMap{})),
		)
	}
	want := []string{
		"<nil>", "<nil>", "get ConfigMap called 3 times, expected 2 call(s)",
		"get ConfigMap called 4 times, expected 2 call(s)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestCalledAtMostTimes_concurrently(t *testing.T) {
	c := newTestClient(t)
	c.PrependReactor("*", "*", CalledAtMostTimes("list", "ConfigMapList", 5))
	var wait sync.WaitGroup
	var passed atomic.Int64
	for range 20 {
		wait.Go(func() {
			if c.List(t.Context(), &corev1.ConfigMapList{}) == nil {
				passed.Add(1)
			}
		})
	}
	wait.Wait()
	if passed.Load() != 5 {
		t.Errorf("%d calls have passed", passed.Load())
	}
}

// Reactors are asked in their order, and no further once one handles the call.
func TestReactors_order(t *testing.T) {
	c := newTestClient(t)
	var asked []string
	reactor := func(name string, handles bool) ReactionFunc {
		return func(Action) (bool, runtime.Object, error) {
			asked = append(asked, name)
			return handles, nil, nil
		}
	}
	c.AddReactor("delete", "*", reactor("added", false))
	c.AddReactor("*", "ConfigMap", reactor("handles", true))
	c.AddReactor("*", "*", reactor("after", false))
	c.AddReactor("delete", "Secret", reactor("other kind", true))
	c.PrependReactor("*", "*", reactor("prepended", false))
	c.PrependReactor("*", "*", reactor("prepended last", false))
	if err := c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: objectMeta("one")}); !apierrs.IsNotFound(err) {
		t.Errorf("error = %v", err)
	}
	if diff := cmp.Diff([]string{"prepended last", "prepended", "added", "handles"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// A reactor may call the client it is asked by.
func TestReactors_mayCallTheClient(t *testing.T) {
	c := newTestClient(t, &corev1.ConfigMap{ObjectMeta: objectMeta("one")})
	c.PrependReactor("patch", "ConfigMap", func(Action) (bool, runtime.Object, error) {
		c.PrependReactor("get", "*", InduceFailure("get", "Secret"))
		return false, nil, c.Get(t.Context(), client.ObjectKey{Namespace: "my-namespace", Name: "one"}, &corev1.ConfigMap{})
	})
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"1"}}`))
	if err := c.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: objectMeta("one")}, patch); err != nil {
		t.Error(err)
	}
}
