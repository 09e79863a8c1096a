// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/walk"
	"trueup.dev/internal/memapi/specs"
)

// foreignKey is the key of labels and annotations that users add for their own purposes.
const foreignKey = "users.example.com/note"

// foreignFields are the parts of the metadata to which users add a key.
var foreignFields = []string{"labels", "annotations"}

func foreignPath(field string) specs.Path { return specs.Path{"metadata", field, foreignKey} }

// foreignValues returns the values of the key that an object has, by the path of the property.
func foreignValues(obj client.Object) map[string]string {
	values := map[string]string{}
	for i, content := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
		if value, ok := content[foreignKey]; ok {
			values[foreignPath(foreignFields[i]).String()] = value
		}
	}
	return values
}

// foreignSpec returns a spec in which users have added a label and an annotation, unless these are skipped.
func (s *specSpace) foreignSpec(value string) walk.Spec {
	var changes []specs.Change
	for _, field := range foreignFields {
		if path := foreignPath(field); !s.skips(path.String()) {
			changes = append(changes, specs.Change{Path: path, Value: specs.Value{Content: value}})
		}
	}
	return walk.Spec{}.With(changes...)
}

// metadata adds a label and an annotation to the object, changes and removes them. They may have an effect, because
// some controllers pass them on. This is an advice.
func (x *statesSearch) metadata() *StatesFailure {
	one, two := x.foreignSpec("one"), x.foreignSpec("two")
	if len(one.Changes) == 0 {
		return nil
	}
	if failure := x.try(walk.Walk{{}, one, two, {}, one, {Deleted: true}}); failure != nil {
		return failure
	}
	x.foreign = acceptedProperty{Property: specs.Property{Path: specs.Path{"metadata"}}, specs: []walk.Spec{one, two}}
	without, with := x.newObject(x.admit(walk.Walk{{}})[0]), x.newObject(x.admit(walk.Walk{one})[0])
	var affected []string
	for _, d := range x.effectsOf(without, with) {
		affected = append(affected, d.Name)
	}
	if len(affected) > 0 {
		x.cert.Advice = append(x.cert.Advice, fmt.Sprintf(
			"the label or the annotation %s, which users add, has an effect on %s", foreignKey, strings.Join(affected, ", "),
		))
	}
	return nil
}

// withMetadata returns changes that users can make, which include those of the metadata.
func (x *statesSearch) withMetadata() []acceptedProperty {
	if len(x.foreign.specs) == 0 {
		return x.accepted
	}
	return append(slices.Clip(x.accepted), x.foreign)
}

// withoutKey returns a map without a key.
func withoutKey(m map[string]string, key string) map[string]string {
	if _, ok := m[key]; !ok {
		return m
	}
	rest := maps.Clone(m)
	delete(rest, key)
	return rest
}
