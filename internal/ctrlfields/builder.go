// SPDX-License-Identifier: Apache-2.0

package ctrlfields

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Input is what a call of For, Owns or Watches adds to a builder.
type Input struct {
	// Object is nil if the builder has no For.
	Object     client.Object
	Predicates []predicate.Predicate
	// MetadataOnly reports whether the input has the option [builder.OnlyMetadata].
	MetadataOnly bool
	// MatchEveryOwner reports whether an input of Owns has the option [builder.MatchEveryOwner].
	MatchEveryOwner bool
	// Handler is that of Watches.
	Handler handler.EventHandler
}

// ForInput returns the input of For.
func ForInput(bldr *builder.Builder) (Input, bool) {
	of, ok := field[builder.ForInput](reflect.ValueOf(bldr).Elem(), "forInput")
	if !ok {
		return Input{}, false
	}
	return newInput(reflect.ValueOf(of).Elem(), "object")
}

// OwnsInputs returns the inputs of Owns.
func OwnsInputs(bldr *builder.Builder) ([]Input, bool) {
	all, ok := field[[]builder.OwnsInput](reflect.ValueOf(bldr).Elem(), "ownsInput")
	if !ok {
		return nil, false
	}
	inputs := make([]Input, len(*all))
	for i := range *all {
		of := reflect.ValueOf(&(*all)[i]).Elem()
		if inputs[i], ok = newInput(of, "object"); !ok {
			return nil, false
		}
		if every, ok := field[bool](of, "matchEveryOwner"); ok {
			inputs[i].MatchEveryOwner = *every
		}
	}
	return inputs, true
}

// WatchesInputs returns the inputs of Watches.
func WatchesInputs(bldr *builder.Builder) ([]Input, bool) {
	all, ok := field[[]builder.WatchesInput[reconcile.Request]](reflect.ValueOf(bldr).Elem(), "watchesInput")
	if !ok {
		return nil, false
	}
	inputs := make([]Input, len(*all))
	for i := range *all {
		of := reflect.ValueOf(&(*all)[i]).Elem()
		eventHandler, ok := field[handler.EventHandler](of, "handler")
		if !ok {
			return nil, false
		}
		if inputs[i], ok = newInput(of, "obj"); !ok {
			return nil, false
		}
		inputs[i].Handler = *eventHandler
	}
	return inputs, true
}

func newInput(of reflect.Value, objectName string) (Input, bool) {
	object, ok := field[client.Object](of, objectName)
	predicates, alsoOK := field[[]predicate.Predicate](of, "predicates")
	if !ok || !alsoOK {
		return Input{}, false
	}
	projection := of.FieldByName("objectProjection") // its type is not exported
	return Input{
		Object: *object, Predicates: *predicates,
		MetadataOnly: projection.IsValid() && projection.CanInt() && projection.Int() != 0,
	}, true
}

// RawSources returns the sources of WatchesRawSource.
func RawSources(bldr *builder.Builder) ([]source.Source, bool) {
	return copied[[]source.Source](bldr, "rawSources")
}

// GlobalPredicates returns the predicates of WithEventFilter.
func GlobalPredicates(bldr *builder.Builder) ([]predicate.Predicate, bool) {
	return copied[[]predicate.Predicate](bldr, "globalPredicates")
}

func copied[T any](bldr *builder.Builder, name string) (value T, ok bool) {
	of, ok := field[T](reflect.ValueOf(bldr).Elem(), name)
	if ok {
		value = *of
	}
	return value, ok
}

// WrapPredicates replaces the predicates that apply to the input of For: its own, and the predicates of
// WithEventFilter, which also apply to other inputs. It returns false if controller-runtime has changed; then it does
// nothing.
func WrapPredicates(bldr *builder.Builder, wrap func(predicate.Predicate) predicate.Predicate) bool {
	of := reflect.ValueOf(bldr).Elem()
	global, ok := field[[]predicate.Predicate](of, "globalPredicates")
	input, alsoOK := field[builder.ForInput](of, "forInput")
	if !ok || !alsoOK {
		return false
	}
	own, ok := field[[]predicate.Predicate](reflect.ValueOf(input).Elem(), "predicates")
	if !ok {
		return false
	}
	for _, list := range []*[]predicate.Predicate{global, own} {
		wrapped := make([]predicate.Predicate, len(*list))
		for i, p := range *list {
			wrapped[i] = wrap(p)
		}
		*list = wrapped
	}
	return true
}

// NewController is the type of the function by which a builder creates its controller.
type NewController = func(
	name string, mgr manager.Manager, options controller.Options,
) (controller.Controller, error)

// WrapNewController replaces the function by which a builder creates its controller. wrap is called with the function
// before. WrapNewController returns false if controller-runtime has changed; then it does nothing.
func WrapNewController(bldr *builder.Builder, wrap func(create NewController) NewController) bool {
	hook, ok := field[NewController](reflect.ValueOf(bldr).Elem(), "newController")
	if !ok {
		return false
	}
	create := *hook
	if create == nil {
		create = controller.NewTyped[reconcile.Request]
	}
	*hook = wrap(create)
	return true
}
