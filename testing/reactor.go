// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
