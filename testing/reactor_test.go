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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// answering returns a client whose calls are all answered with an object, and fails the test when one is executed
// nevertheless.
func answering(t *testing.T, answer runtime.Object) *clientWrapper {
	t.Helper()
	c := newTestClient(t, &corev1.ConfigMap{ObjectMeta: objectMeta("one"), Data: map[string]string{"stored": "yes"}})
	c.PrependReactor("*", "*", func(Action) (bool, runtime.Object, error) { return true, answer, nil })
	t.Cleanup(func() {
		stored := &corev1.ConfigMap{}
		if err := c.client.Get(
			context.WithoutCancel(t.Context()), client.ObjectKey{Namespace: "my-namespace", Name: "one"}, stored,
		); err != nil {
			t.Error(err)
		}
		if stored.ResourceVersion != "999" {
			t.Errorf("the call was executed: %v", stored)
		}
	})
	return c
}

func TestReactors_answer(t *testing.T) {
	answer := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: objectMeta("one"), Data: map[string]string{"answered": "yes"},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(answer)
	if err != nil {
		t.Fatal(err)
	}
	untypedAnswer := &unstructured.Unstructured{Object: content}
	answers := map[string]runtime.Object{
		"of the same type": answer, "unstructured": untypedAnswer, "wrapped": wrapped{answer},
	}
	calls := map[string]func(ctx context.Context, c client.Client, obj client.Object) error{
		"get": func(ctx context.Context, c client.Client, obj client.Object) error {
			return c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		},
		"create": func(ctx context.Context, c client.Client, obj client.Object) error { return c.Create(ctx, obj) },
		"update": func(ctx context.Context, c client.Client, obj client.Object) error { return c.Update(ctx, obj) },
		"patch": func(ctx context.Context, c client.Client, obj client.Object) error {
			return c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{}`)))
		},
		"status update": func(ctx context.Context, c client.Client, obj client.Object) error {
			return c.Status().Update(ctx, obj)
		},
		"status patch": func(ctx context.Context, c client.Client, obj client.Object) error {
			return c.Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{}`)))
		},
		"subresource get": func(ctx context.Context, c client.Client, obj client.Object) error {
			return c.SubResource("any").Get(ctx, &corev1.Pod{}, obj)
		},
		"subresource create": func(ctx context.Context, c client.Client, obj client.Object) error {
			return c.SubResource("any").Create(ctx, &corev1.Pod{}, obj)
		},
		"subresource update": func(ctx context.Context, c client.Client, obj client.Object) error {
			return c.SubResource("any").Update(ctx, &corev1.Pod{}, client.WithSubResourceBody(obj))
		},
	}
	for callName, call := range calls {
		for answerName, answer := range answers {
			t.Run(callName+" "+answerName, func(t *testing.T) {
				c := answering(t, answer)
				typed := &corev1.ConfigMap{ObjectMeta: objectMeta("one"), BinaryData: map[string][]byte{"is": {1}}}
				if err := call(t.Context(), c, typed); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(
					&corev1.ConfigMap{ObjectMeta: objectMeta("one"), Data: map[string]string{"answered": "yes"}}, typed,
				); diff != "" {
					t.Errorf("typed (-want +got):\n%s", diff)
				}
				u := &unstructured.Unstructured{Object: map[string]any{"is": "replaced"}}
				u.SetAPIVersion("v1")
				u.SetKind("ConfigMap")
				if err := call(t.Context(), c, u); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(untypedAnswer.Object, u.Object); diff != "" {
					t.Errorf("unstructured (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestReactors_answerIsCopied(t *testing.T) {
	answer := &corev1.ConfigMap{ObjectMeta: objectMeta("one"), Data: map[string]string{"a": "1"}}
	c := answering(t, answer)
	got := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "one"}, got); err != nil {
		t.Fatal(err)
	}
	got.Data["a"] = "2"
	if answer.Data["a"] != "1" {
		t.Error("the answer was changed")
	}
}

func TestReactors_answerList(t *testing.T) {
	c := answering(t, &corev1.ConfigMapList{Items: []corev1.ConfigMap{{ObjectMeta: objectMeta("answered")}}})
	list := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 1 || list.Items[0].Name != "answered" {
		t.Errorf("list = %v, error = %v", list, err)
	}
}

func TestReactors_answerDuck(t *testing.T) {
	c := answering(t, &fixture.Resource{
		ObjectMeta: objectMeta("one"), Spec: fixture.ResourceSpec{Fields: map[string]string{"a": "1"}},
	})
	duck := fixture.NewDuck("my-namespace", "one")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(duck), duck); err != nil || duck.Spec.Fields["a"] != "1" ||
		duck.Kind != "Resource" {
		t.Errorf("duck = %v, error = %v", duck, err)
	}
}

func TestReactors_answerApply(t *testing.T) {
	c := answering(t, &corev1.ConfigMap{ObjectMeta: objectMeta("one"), Data: map[string]string{"a": "1"}})
	typed := corev1apply.ConfigMap("one", "my-namespace").WithLabels(map[string]string{"is": "replaced"})
	u := &unstructured.Unstructured{Object: map[string]any{"is": "replaced"}}
	untyped := client.ApplyConfigurationFromUnstructured(u)
	for _, err := range []error{
		c.Apply(t.Context(), typed), c.Apply(t.Context(), untyped), c.Status().Apply(
			t.Context(), corev1apply.Pod("one", "my-namespace"),
		),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if typed.Data["a"] != "1" || typed.Labels != nil {
		t.Errorf("typed = %v", typed)
	}
	if data, _, _ := unstructured.NestedString(u.Object, "data", "a"); data != "1" || u.Object["is"] != nil {
		t.Errorf("unstructured = %v", u.Object)
	}
}

// Calls that return nothing take any answer.
func TestReactors_answerNothing(t *testing.T) {
	c := answering(t, &corev1.Secret{})
	if err := errors.Join(
		c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: objectMeta("one")}),
		c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("my-namespace")),
	); err != nil {
		t.Error(err)
	}
}

func TestReactors_answerStatus(t *testing.T) {
	c := answering(t, &metav1.Status{Status: metav1.StatusSuccess})
	obj := &corev1.ConfigMap{ObjectMeta: objectMeta("one")}
	if err := errors.Join(
		c.Update(t.Context(), obj), c.Delete(t.Context(), obj), c.SubResource("eviction").Create(
			t.Context(), &corev1.Pod{}, &policyv1.Eviction{},
		),
	); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(&corev1.ConfigMap{ObjectMeta: objectMeta("one")}, obj); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}

	c = answering(t, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "no"})
	if err := c.Update(t.Context(), obj); !apierrs.IsForbidden(err) {
		t.Errorf("error = %v", err)
	}
}

func TestReactors_answerOfAnotherKind(t *testing.T) {
	c := answering(t, &corev1.Secret{})
	err := c.Get(t.Context(), client.ObjectKey{Name: "one"}, &corev1.ConfigMap{})
	want := "a reactor answers get ConfigMap with *v1.Secret, which cannot be copied into *v1.ConfigMap: Secret is not " +
		"ConfigMap"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v", err)
	}
	if _, err := c.Watch(t.Context(), &corev1.ConfigMapList{}); err == nil ||
		err.Error() != "a reactor answers watch ConfigMapList, which is not possible" {
		t.Errorf("error = %v", err)
	}
}

// The object of the action is not an answer: the call is executed with what the reactor has made of it.
func TestReactors_changeTheObject(t *testing.T) {
	answers := map[string]func(action Action) runtime.Object{
		"nil":             func(Action) runtime.Object { return nil },
		"nil of a type":   func(Action) runtime.Object { return (*corev1.ConfigMap)(nil) },
		"the very object": func(action Action) runtime.Object { return action.(CreateAction).GetObject() },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			c := newTestClient(t)
			c.PrependReactor("create", "ConfigMap", func(action Action) (bool, runtime.Object, error) {
				action.(CreateAction).GetObject().(*corev1.ConfigMap).Data = map[string]string{"defaulted": "yes"}
				return true, answer(action), nil
			})
			obj := &corev1.ConfigMap{ObjectMeta: objectMeta("one")}
			if err := c.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			stored := &corev1.ConfigMap{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), stored); err != nil ||
				stored.Data["defaulted"] != "yes" {
				t.Errorf("stored = %v, error = %v", stored, err)
			}
			if data := c.CreateActions[0].GetObject().(*corev1.ConfigMap).Data; data != nil {
				t.Errorf("recorded with data %v", data)
			}
		})
	}
}
