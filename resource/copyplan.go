// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// copyInto makes out a deep copy of in.
func copyInto[T any](in, out *T) {
	t := reflect.TypeFor[T]()
	// A promoted method of an embedded field has a parameter of another type, and would copy only that field.
	if copier, ok := any(in).(interface{ DeepCopyInto(out *T) }); ok && t.Kind() == reflect.Struct {
		copier.DeepCopyInto(out)
		return
	}
	*out = *in
	copyPlanOf(t).apply(reflect.ValueOf(out).Elem())
}

// copyPlan copies values of one Go type.
type copyPlan struct {
	// detach replaces all memory that a value shares with the value it was assigned from. It is nil if an assignment is a
	// copy. The value must be settable.
	detach func(v reflect.Value)
}

func (p *copyPlan) apply(v reflect.Value) {
	if p.detach != nil {
		p.detach(v)
	}
}

// copyPlans caches the plans by type.
var copyPlans sync.Map

func copyPlanOf(t reflect.Type) *copyPlan {
	if plan, ok := copyPlans.Load(t); ok {
		return plan.(*copyPlan)
	}
	// Plans of types that contain themselves are complete only when all plans of the same planner are.
	made := planner{}
	made.plan(t, false)
	for key, plan := range made {
		if !key.hidden {
			copyPlans.LoadOrStore(key.t, plan)
		}
	}
	return made[planKey{t, false}]
}

// fieldPlans caches the plans of copyPlanOfFields by type.
var fieldPlans sync.Map

// copyPlanOfFields returns the plan for a struct that does not use the struct's own methods.
func copyPlanOfFields(t reflect.Type) *copyPlan {
	if plan, ok := fieldPlans.Load(t); ok {
		return plan.(*copyPlan)
	}
	plan := &copyPlan{detach: planner{}.detachFields(t, false)}
	fieldPlans.Store(t, plan)
	return plan
}

// planKey is a type, and whether its values are in an unexported field.
type planKey struct {
	t      reflect.Type
	hidden bool
}

type planner map[planKey]*copyPlan

// immutable holds types with references whose values are never changed, only replaced.
var immutable = map[reflect.Type]bool{reflect.TypeFor[metav1.Time](): true, reflect.TypeFor[metav1.MicroTime](): true}

func (made planner) plan(t reflect.Type, hidden bool) *copyPlan {
	key := planKey{t, hidden}
	if plan, ok := made[key]; ok {
		return plan
	}
	plan := &copyPlan{}
	made[key] = plan
	if immutable[t] {
		return plan
	}
	if method := copyMethod(t); method != nil {
		plan.detach = func(v reflect.Value) {
			// Generated methods of slices and maps rely on their callers to keep nil values.
			if kind := t.Kind(); kind != reflect.Slice && kind != reflect.Map || !v.IsNil() {
				method(v)
			}
		}
		return plan
	}
	made.planKind(plan, t, hidden)
	return plan
}

// planKind completes the plan of a type that cannot copy itself.
func (made planner) planKind(plan *copyPlan, t reflect.Type, hidden bool) {
	// A plan must set its own function before it requests the plan of another type: the other type may contain this one.
	var elem *copyPlan
	switch t.Kind() {
	case reflect.Pointer:
		if hidden && copyMethod(t.Elem()) == nil {
			return
		}
		plan.detach = func(v reflect.Value) {
			if !v.IsNil() {
				pointer := reflect.New(t.Elem())
				pointer.Elem().Set(v.Elem())
				elem.apply(pointer.Elem())
				v.Set(pointer)
			}
		}
		elem = made.plan(t.Elem(), hidden)
	case reflect.Slice:
		plan.detach = func(v reflect.Value) {
			if !v.IsNil() {
				slice := reflect.MakeSlice(t, v.Len(), v.Len())
				reflect.Copy(slice, v)
				elem.applyToEach(slice)
				v.Set(slice)
			}
		}
		elem = made.plan(t.Elem(), hidden)
	case reflect.Map:
		plan.detach = func(v reflect.Value) {
			if !v.IsNil() {
				v.Set(elem.copyMap(v))
			}
		}
		elem = made.plan(t.Elem(), hidden)
	case reflect.Interface:
		if !hidden {
			plan.detach = detachInterface
		}
	case reflect.Array:
		if elem = made.plan(t.Elem(), hidden); elem.detach != nil && t.Len() > 0 {
			plan.detach = elem.applyToEach
		}
	case reflect.Struct:
		plan.detach = made.detachFields(t, hidden)
	}
}

// applyToEach applies the plan to the elements of a slice or an array.
func (p *copyPlan) applyToEach(v reflect.Value) {
	if p.detach != nil {
		for i := range v.Len() {
			p.detach(v.Index(i))
		}
	}
}

// copyMap copies a map whose values have this plan. Keys are not copied: a copy of a pointer would be a different key.
func (p *copyPlan) copyMap(v reflect.Value) reflect.Value {
	m := reflect.MakeMapWithSize(v.Type(), v.Len())
	value := reflect.New(v.Type().Elem()).Elem()
	for iter := v.MapRange(); iter.Next(); {
		value.SetIterValue(iter)
		p.apply(value)
		m.SetMapIndex(iter.Key(), value)
	}
	return m
}

func detachInterface(v reflect.Value) {
	if v.IsNil() {
		return
	}
	if plan := copyPlanOf(v.Elem().Type()); plan.detach != nil {
		value := reflect.New(v.Elem().Type()).Elem()
		value.Set(v.Elem())
		plan.detach(value)
		v.Set(value)
	}
}

// detachFields returns a function for structs of type t, or nil if no field needs one.
func (made planner) detachFields(t reflect.Type, hidden bool) func(v reflect.Value) {
	type field struct {
		index int
		plan  *copyPlan
	}
	fields := []field{}
	for i := range t.NumField() {
		f := t.Field(i)
		// The exported fields of an embedded struct are exported here, even if its type is not.
		if plan := made.plan(f.Type, hidden || !f.IsExported() && !f.Anonymous); plan.detach != nil {
			fields = append(fields, field{i, plan})
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return func(v reflect.Value) {
		for _, f := range fields {
			value := v.Field(f.index)
			if !value.CanSet() {
				value = reflect.NewAt(value.Type(), value.Addr().UnsafePointer()).Elem()
			}
			f.plan.detach(value)
		}
	}
}

// copyMethod returns a function that copies values of type t with the type's own method, or nil if the type has none.
func copyMethod(t reflect.Type) func(v reflect.Value) {
	pointer := reflect.PointerTo(t)
	into, ok := pointer.MethodByName("DeepCopyInto")
	if ok && into.Type.NumIn() == 2 && into.Type.In(1) == pointer && into.Type.NumOut() == 0 {
		return func(v reflect.Value) {
			out := reflect.New(t)
			into.Func.Call([]reflect.Value{v.Addr(), out})
			v.Set(out.Elem())
		}
	}
	method, ok := pointer.MethodByName("DeepCopy")
	if !ok || method.Type.NumIn() != 1 || method.Type.NumOut() != 1 {
		return nil
	}
	switch method.Type.Out(0) {
	case t:
		return func(v reflect.Value) { v.Set(method.Func.Call([]reflect.Value{v.Addr()})[0]) }
	case pointer:
		return func(v reflect.Value) { v.Set(method.Func.Call([]reflect.Value{v.Addr()})[0].Elem()) }
	}
	return nil
}
