// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InduceFailureOpts narrow what [InduceFailure] fails. Empty fields match everything.
type InduceFailureOpts struct {
	// Error is what calls fail with. Default is "inducing failure for <verb> <kind>".
	Error error
	// Namespace is that of the object, of the list, or of the deleted collection.
	Namespace string
	// Name is that of the object. Calls that have no name, list and delete-collection, match any.
	Name string
	// SubResource is "status" or the name of another one. Empty matches the object itself as well as all of its sub
	// resources.
	SubResource string
}

// InduceFailure returns a reactor that fails all calls of a verb for a kind, compared without regard to case. The kind
// may have a sub resource, as in "Deployment/scale"; that of a list ends in List, as in "ConfigMapList". It panics when
// there are several options.
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

// CalledAtMostTimes returns a reactor that lets the first calls of a verb for a kind pass, and fails all after these.
// Verb and kind are compared as [InduceFailure] does. The calls of all clients that have the reactor count.
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
