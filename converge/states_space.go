// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/walk"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/specs"
)

// specSpace is the specs of one object, and the way to write them.
type specSpace struct {
	plan *plan
	// before are the steps before the object is created.
	before []Step
	// base is the object as users create it first, and content its JSON content.
	base    client.Object
	content map[string]any

	properties []specs.Property
	// leftOut are the reasons why properties are not changed.
	leftOut []string
}

// newSpecSpace finds the first primary object, and lists its properties.
func newSpecSpace(p *plan) (*specSpace, error) {
	space := &specSpace{plan: p}
	if err := space.findBase(); err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(space.base)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	for _, field := range foreignFields { // keys can be added to them
		if metadata, ok := content["metadata"].(map[string]any); ok && metadata[field] == nil {
			metadata[field] = map[string]any{}
		}
	}
	space.content = content
	if stored := space.admit(walk.Walk{{}})[0]; stored.rejected != nil {
		return nil, fmt.Errorf("the API server rejects %s: %w", phrase.Describe(space.base), stored.rejected)
	}
	properties, opaque := specs.Properties(space.schema(), content)
	for _, path := range opaque {
		space.leftOut = append(space.leftOut, path+" is not changed: its schema does not describe values, or is too large")
	}
	return space, space.declare(properties)
}

// findBase takes the first primary object from the steps or from Given.
func (s *specSpace) findBase() error {
	p := s.plan
	isPrimary := func(obj client.Object) bool {
		gvk, err := gvkOf(p, obj)
		return err == nil && gvk == p.primary
	}
	for i, step := range p.Steps {
		if step.applies != nil && isPrimary(step.applies) {
			s.before, s.base = p.Steps[:i], step.applies
			break
		}
	}
	if s.base == nil {
		if i := slices.IndexFunc(p.Given, isPrimary); i >= 0 {
			s.base = p.Given[i]
			p.Given = slices.Delete(slices.Clone(p.Given), i, i+1)
		}
	}
	if s.base == nil {
		return fmt.Errorf("States requires a %s in Given, or an Apply of one in Steps", p.primary.Kind)
	}
	s.base = s.base.DeepCopyObject().(client.Object)
	s.base.SetResourceVersion("")
	s.base.SetUID("")
	return nil
}

// schema returns the schema of the primary kind.
func (s *specSpace) schema() *apiextensionsv1.JSONSchemaProps {
	kind := s.plan.primary
	for _, obj := range s.plan.CRDs {
		crd, err := definition(obj)
		if err != nil || crd.Spec.Group != kind.Group || crd.Spec.Names.Kind != kind.Kind {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if v.Name == kind.Version && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
				return v.Schema.OpenAPIV3Schema
			}
		}
	}
	return specs.SchemaOf(reflect.TypeOf(s.base))
}

// declare applies what the scenario says about properties.
func (s *specSpace) declare(properties []specs.Property) error {
	declared := s.plan.Space
	var problems []error
	matches := func(field, path string) {
		metadata := field == "Skip" && slices.ContainsFunc(foreignFields, func(field string) bool {
			return state.Within(foreignPath(field).String(), path)
		})
		if !metadata &&
			!slices.ContainsFunc(properties, func(p specs.Property) bool { return state.Within(p.Path.String(), path) }) {
			problems = append(problems, fmt.Errorf("unknown property %q in Space.%s", path, field))
		}
	}
	for _, path := range phrase.SortedKeys(declared.Values) {
		property := specs.Property{Path: specs.ParsePath(path)}
		at := slices.IndexFunc(properties, func(p specs.Property) bool { return p.Path.String() == path })
		if at >= 0 {
			property = properties[at]
			properties = slices.Delete(properties, at, at+1)
		}
		var values []specs.Value
		for _, value := range declared.Values[path] {
			content, err := walk.JSONContent(value)
			if err != nil {
				problems = append(problems, fmt.Errorf("Space.Values[%s]: %w", path, err))
			}
			values = append(values, specs.Value{Content: content})
		}
		property.Values = append(values, property.Values...)
		properties = append(properties, property)
	}
	for _, path := range phrase.SortedKeys(declared.Skip) {
		matches("Skip", path)
		if declared.Skip[path] == "" {
			problems = append(problems, fmt.Errorf("Space.Skip[%s]: a reason is required", path))
		}
		s.leftOut = append(s.leftOut, fmt.Sprintf("%s is not changed: %s", path, declared.Skip[path]))
	}
	for _, path := range phrase.SortedKeys(declared.Ignored) {
		matches("Ignored", path)
		if declared.Ignored[path] == "" {
			problems = append(problems, fmt.Errorf("Space.Ignored[%s]: a reason is required", path))
		}
		s.leftOut = append(s.leftOut, fmt.Sprintf("%s need not have an effect: %s", path, declared.Ignored[path]))
	}
	for i, field := range declared.HistoryDependent {
		if field.Reason == "" {
			problems = append(problems, fmt.Errorf("Space.HistoryDependent[%d]: a reason is required", i))
		}
		s.leftOut = append(s.leftOut, fmt.Sprintf("%s may depend on earlier specs: %s", field.name(), field.Reason))
	}
	s.properties = slices.DeleteFunc(properties, func(p specs.Property) bool { return s.skips(p.Path.String()) })
	return errors.Join(problems...)
}

// skips reports whether a property is not changed.
func (s *specSpace) skips(property string) bool {
	return slices.ContainsFunc(
		phrase.SortedKeys(s.plan.Space.Skip), func(path string) bool { return state.Within(property, path) },
	)
}

func (h HistoryDependent) name() string {
	switch {
	case h.Object == nil:
		return h.Field
	case h.Field == "":
		return phrase.KindOf(h.Object)
	default:
		return phrase.KindOf(h.Object) + " " + h.Field
	}
}

// isFor reports whether a field of an object may depend on earlier specs.
func (s *specSpace) isFor(h HistoryDependent, name string) bool {
	if h.Object == nil {
		return true
	}
	gvk, err := gvkOf(s.plan, h.Object)
	return err == nil && strings.HasPrefix(name, gvk.Kind+" ")
}

// object returns the object with a spec.
func (s *specSpace) object(spec walk.Spec) (client.Object, error) {
	content := runtime.DeepCopyJSON(s.content)
	for _, change := range walk.Sorted(spec.Changes) {
		change.Apply(content)
	}
	if _, ok := s.base.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{Object: content}, nil
	}
	obj := reflect.New(reflect.TypeOf(s.base).Elem()).Interface().(client.Object)
	return obj, runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
}

// stored is what the API server answers to a write.
type stored struct {
	rejected error
	// key identifies the stored spec. It is empty if no object is stored.
	key    string
	object client.Object
}

// admit returns what the API server stores after each write of a walk, if no controller runs.
func (s *specSpace) admit(w walk.Walk) []stored {
	server := memapi.New(memapi.Options{
		Registry: s.plan.registry, Conversion: s.plan.asVersion().Convert, Seed: 1,
		Now: func() time.Time { return time.Unix(1_000_000_000, 0) },
	})
	c, ctx := server.Client(phrase.User), context.Background()
	if namespace := s.base.GetNamespace(); namespace != "" {
		// It may exist: then the error does not matter. Otherwise the writes are rejected.
		_ = c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	results := make([]stored, len(w))
	for i, spec := range w {
		results[i].rejected = s.write(ctx, c, spec)
		obj := server.Get(s.plan.primary, client.ObjectKeyFromObject(s.base))
		if obj == nil {
			continue
		}
		results[i].object, results[i].key = obj, specKey(obj)
	}
	return results
}

// write creates, replaces or deletes the object.
func (s *specSpace) write(ctx context.Context, c client.Client, spec walk.Spec) error {
	if spec.Disturbance != "" {
		return nil
	}
	if spec.Deleted {
		return client.IgnoreNotFound(c.Delete(ctx, s.base.DeepCopyObject().(client.Object)))
	}
	obj, err := s.object(spec)
	if err != nil {
		return err
	}
	if err = replace(ctx, c, obj, foreignKey); apierrs.IsNotFound(err) {
		return c.Create(ctx, obj)
	}
	return err
}

// specKey encodes what users want.
func specKey(obj client.Object) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err.Error()
	}
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, field)
	}
	for path, value := range foreignValues(obj) {
		content[path] = value
	}
	return specs.Value{Content: content}.String()
}

// gvkOf returns the kind of an object in the scheme.
func gvkOf(p *plan, obj client.Object) (schema.GroupVersionKind, error) {
	c := &scenarioCheck{plan: p}
	return c.kindOf("object", obj), errors.Join(c.problems...)
}

// steps returns the steps of a walk, and the index of the Settle after each write. A run of them records in results
// which writes were rejected.
func (s *specSpace) steps(w walk.Walk, results []stored) (steps []Step, settles []int) {
	steps = append(steps, s.before...)
	for i, spec := range w {
		do := func(ctx context.Context, c client.Client) error {
			err := s.write(ctx, c, spec)
			if results[i].rejected == nil && !apierrs.IsInvalid(err) && !apierrs.IsForbidden(err) && !apierrs.IsBadRequest(err) {
				return err
			}
			results[i].rejected = cmp.Or(results[i].rejected, err)
			return nil
		}
		settle := Settle()
		settle.plain.MayFail = true
		step := Do("write: "+spec.Describe(w[:i], s.content), do)
		if spec.Disturbance != "" {
			step = *s.disturbance(spec.Disturbance)
			step.plain.Disturbs = true
		}
		steps = append(steps, step, settle)
		settles = append(settles, len(steps)-1)
	}
	return steps, settles
}

// disturbance returns a disturbance of the scenario, or nil.
func (s *specSpace) disturbance(name string) *Step {
	for i := range s.plan.Disturbances {
		if step := &s.plan.Disturbances[i]; step.plain.Name == name {
			return step
		}
	}
	return nil
}
