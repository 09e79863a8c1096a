// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/empty"
	"trueup.dev/testing/internal/fakeapi"
)

// InduceFailureOpts restrict the calls that [InduceFailure] fails. Empty fields match everything.
type InduceFailureOpts struct {
	// Error is the error of the calls. Defaults to "inducing failure for <verb> <kind>".
	Error error
	// Namespace is the namespace of the object, of the list, or of the deleted collection.
	Namespace string
	// Name is the name of the object. Calls without a name, list and delete-collection, match any.
	Name string
	// SubResource is "status" or the name of another subresource. Empty matches the object and all of its subresources.
	SubResource string
}

// InduceFailure returns a reactor that fails all calls of a verb for a kind. It ignores case in both. The kind may have
// a subresource, as in "Deployment/scale"; the kind of a list ends in List, as in "ConfigMapList". InduceFailure panics
// if it gets several options.
func InduceFailure(verb, kind string, o ...InduceFailureOpts) ReactionFunc {
	var opts InduceFailureOpts
	switch len(o) {
	case 0:
	case 1:
		opts = o[0]
	default:
		panic(fmt.Errorf("InduceFailure takes one InduceFailureOpts at most, got %d", len(o)))
	}
	return func(action Action) (handled bool, ret runtime.Object, err error) {
		if !action.Matches(verb, kind) || !opts.match(action) {
			return false, nil, nil
		}
		if opts.Error != nil {
			return true, nil, opts.Error
		}
		return true, nil, fmt.Errorf("inducing failure for %s %s", action.GetVerb(), action.GetResource().Resource)
	}
}

func (o InduceFailureOpts) match(action Action) bool {
	if o.Namespace != "" && o.Namespace != action.GetNamespace() || o.SubResource != "" &&
		o.SubResource != action.GetSubresource() {
		return false
	}
	if o.Name == "" {
		return true
	}
	switch a := action.(type) {
	case namedAction:
		return a.GetName() == o.Name
	case objectAction:
		if obj, ok := a.GetObject().(client.Object); ok {
			return obj.GetName() == o.Name
		}
	}
	return true
}

// CalledAtMostTimes returns a reactor that accepts the first calls of a verb for a kind, and fails all later ones. Verb
// and kind are compared as by [InduceFailure]. The reactor counts the calls of all clients that it is added to.
func CalledAtMostTimes(verb, kind string, maxCalls int) ReactionFunc {
	var calls atomic.Int64
	return func(action Action) (handled bool, ret runtime.Object, err error) {
		if !action.Matches(verb, kind) {
			return false, nil, nil
		}
		if called := calls.Add(1); called > int64(maxCalls) {
			return true, nil, fmt.Errorf("%s %s called %d times, expected %d call(s)", verb, kind, called, maxCalls)
		}
		return false, nil, nil
	}
}

// answer copies the result of a reactor to into, the object, the list or the apply configuration of the caller. Into is
// nil for calls that return nothing.
func (w *clientWrapper) answer(action Action, returned runtime.Object, into any) error {
	// the copy of a wrapper is the wrapped object
	returned = returned.DeepCopyObject()
	if status, ok := returned.(*metav1.Status); ok {
		if status.Status == metav1.StatusFailure {
			return apierrs.FromObject(status)
		}
		return nil
	}
	var err error
	switch into := into.(type) {
	case runtime.ApplyConfiguration: // unstructured ones are objects, too
		err = fakeapi.SetApplyConfiguration(into, returned)
	case runtime.Object:
		err = fakeapi.SetObject(w, into, returned)
	}
	if err != nil {
		return fmt.Errorf("a reactor answers %s %s with %T, which cannot be copied into %T: %w",
			action.GetVerb(), action.GetResource().Resource, returned, into, err)
	}
	return nil
}

// noteTaken records the object that an AlreadyExists error names. Reconcilers of children read that object.
func (w *clientWrapper) noteTaken(obj client.Object, err error) {
	gvk, kindErr := w.client.GroupVersionKindFor(obj)
	if kindErr != nil {
		return
	}
	taken := &unstructured.Unstructured{}
	taken.SetGroupVersionKind(gvk)
	taken.SetNamespace(obj.GetNamespace())
	taken.SetName(obj.GetName())
	if status := apierrs.APIStatus(nil); errors.As(err, &status) {
		if details := status.Status().Details; details != nil && details.Name != "" {
			taken.SetName(details.Name)
		}
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if !slices.ContainsFunc(w.taken, func(other client.Object) bool { return sameTarget(other, taken) }) {
		w.taken = append(w.taken, taken)
	}
}

func sameTarget(a, b client.Object) bool {
	return client.ObjectKeyFromObject(a) == client.ObjectKeyFromObject(b) &&
		a.GetObjectKind().GroupVersionKind() == b.GetObjectKind().GroupVersionKind()
}

// explainMissingBlockers logs which existing objects have prevented a create and cannot be read. A ChildReconciler
// then returns the error, and does not pass it to ReflectChildStatusOnParent.
func (c *ExpectConfig) explainMissingBlockers(t *testing.T) {
	t.Helper()
	for _, obj := range c.actions().taken {
		key := client.ObjectKeyFromObject(obj)
		found := empty.Like(obj)
		if err := c.Config().APIReader.Get(context.Background(), key, found); !apierrs.IsNotFound(err) {
			continue
		}
		t.Logf("create failed with AlreadyExists%s, and the APIReader does not find %s: a reconciler of children then "+
			"returns the error, for a retry, instead of reflecting it. Add the existing object to APIGivenObjects.",
			c.configName(), target(obj.GetObjectKind().GroupVersionKind().GroupKind(), "", key.Namespace, key.Name))
	}
}
