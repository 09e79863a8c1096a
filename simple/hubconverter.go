// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/resource"
	"trueup.dev/validation"
)

// HubConverter is a [Converter] for Go types. All versions convert through one of them, the hub, which must be able to
// represent every field of every version. For n versions, n-1 need conversion functions. Hub is the Go type of the hub
// version, such as *v2.MyKind.
//
// The converter sets the group, version and kind. It also sets the metadata if a conversion does not. Fields that a Go
// type does not have are lost.
type HubConverter[Hub runtime.Object] struct {
	// Hub is the version that the others convert to and from. Required.
	Hub resource.Kind
	// Spokes are the other versions. Required.
	Spokes []Spoke[Hub]

	lazyInit sync.Once
	invalid  error
}

// Spoke is a version of a kind that can convert to the hub version and from it.
type Spoke[Hub runtime.Object] struct {
	// Kind is the kind in this version. Required.
	Kind resource.Kind
	// ConvertTo writes an object of this version into an empty one of the hub version. Defaults to the method
	// ConvertTo(Hub) error of the Go type. See [NewSpoke] for a function with Go types.
	ConvertTo func(object runtime.Object, hub Hub) error
	// ConvertFrom writes an object of the hub version into an empty one of this version. Defaults to the method
	// ConvertFrom(Hub) error of the Go type.
	ConvertFrom func(object runtime.Object, hub Hub) error
}

// NewSpoke returns a version of a kind that is converted by functions for its Go type. to writes an object into an
// empty one of the hub version; from does the reverse.
func NewSpoke[Object, Hub runtime.Object](kind resource.Kind, to, from func(object Object, hub Hub) error) Spoke[Hub] {
	typed := func(convert func(object Object, hub Hub) error) func(runtime.Object, Hub) error {
		return func(object runtime.Object, hub Hub) error {
			typed, ok := object.(Object)
			if !ok {
				return fmt.Errorf("%s is a %T, which the functions of its Spoke do not accept", kind, object)
			}
			return convert(typed, hub)
		}
	}
	return Spoke[Hub]{Kind: kind, ConvertTo: typed(to), ConvertFrom: typed(from)}
}

// selfConverting has the methods of Go types that convert themselves. If Hub is conversion.Hub of controller-runtime,
// types that implement conversion.Convertible have these methods.
type selfConverting[Hub runtime.Object] interface {
	ConvertTo(hub Hub) error
	ConvertFrom(hub Hub) error
}

var (
	_ Converter            = (*HubConverter[runtime.Object])(nil)
	_ validation.Validator = (*HubConverter[runtime.Object])(nil)
)

// Validate checks that all versions are of one kind, and that each of them can be converted.
func (c *HubConverter[H]) Validate(context.Context) error {
	if c.Hub.Schema == nil {
		return errors.New("HubConverter must define Hub")
	}
	p := problems{}
	if _, ok := c.Hub.ZeroValue().(H); !ok {
		p.add("HubConverter must have the kind of its type parameter as Hub, but %s is %T", c.Hub, c.Hub.ZeroValue())
	}
	if len(c.Spokes) == 0 {
		p.add("HubConverter must define Spokes")
	}
	seen := map[string]bool{c.Hub.Version(): true}
	for i, spoke := range c.Spokes {
		if spoke.Kind.Schema == nil {
			p.add("HubConverter must define Spokes[%d].Kind", i)
			continue
		}
		if spoke.Kind.GroupKind() != c.Hub.GroupKind() {
			p.add("HubConverter must have another version of %s at Spokes[%d], got %s", c.Hub.GroupKind(), i, spoke.Kind)
		} else if seen[spoke.Kind.Version()] {
			p.add("HubConverter must have each version once, but has %s again at Spokes[%d]", spoke.Kind.Version(), i)
		}
		seen[spoke.Kind.Version()] = true
		if _, ok := spoke.Kind.ZeroValue().(selfConverting[H]); !ok && (spoke.ConvertTo == nil || spoke.ConvertFrom == nil) {
			p.add(
				"HubConverter must define ConvertTo and ConvertFrom at Spokes[%d], because %T has no such methods", i,
				spoke.Kind.ZeroValue(),
			)
		}
	}
	return errors.Join(p...)
}

// Convert converts an object to the hub version and from there to the target version. It skips steps that are not
// necessary.
func (c *HubConverter[H]) Convert(obj RawKind, targetAPIVersion string) ([]byte, error) {
	if c.lazyInit.Do(func() { c.invalid = c.Validate(context.Background()) }); c.invalid != nil {
		return nil, c.invalid
	}
	hub, err := c.toHub(obj)
	if err != nil {
		return nil, err
	}
	target, err := c.fromHub(hub, targetAPIVersion)
	if err != nil {
		return nil, err
	}
	if err := carryMetadata(obj.Raw, target); err != nil {
		return nil, err
	}
	return json.Marshal(target)
}

func (c *HubConverter[H]) toHub(obj RawKind) (H, error) {
	hub := c.Hub.ZeroValue().(H)
	if obj.Version == c.Hub.Version() {
		return hub, decode(obj.Raw, hub)
	}
	spoke, err := c.spoke(obj.APIVersion)
	if err != nil {
		return hub, err
	}
	source := spoke.Kind.ZeroValue()
	if err := decode(obj.Raw, source); err != nil {
		return hub, err
	}
	convert := spoke.ConvertTo
	if convert == nil {
		convert = func(object runtime.Object, hub H) error { return object.(selfConverting[H]).ConvertTo(hub) }
	}
	if err := convert(source, hub); err != nil {
		return hub, err
	}
	return hub, carryMetadata(obj.Raw, hub)
}

func (c *HubConverter[H]) fromHub(hub H, apiVersion string) (runtime.Object, error) {
	if apiVersion == c.Hub.GroupVersionKind().GroupVersion().String() {
		hub.GetObjectKind().SetGroupVersionKind(c.Hub.GroupVersionKind())
		return hub, nil
	}
	spoke, err := c.spoke(apiVersion)
	if err != nil {
		return nil, err
	}
	target := spoke.Kind.ZeroValue()
	convert := spoke.ConvertFrom
	if convert == nil {
		convert = func(object runtime.Object, hub H) error { return object.(selfConverting[H]).ConvertFrom(hub) }
	}
	if err := convert(target, hub); err != nil {
		return nil, err
	}
	target.GetObjectKind().SetGroupVersionKind(spoke.Kind.GroupVersionKind())
	return target, nil
}

func (c *HubConverter[H]) spoke(apiVersion string) (*Spoke[H], error) {
	for i := range c.Spokes {
		if c.Spokes[i].Kind.GroupVersionKind().GroupVersion().String() == apiVersion {
			return &c.Spokes[i], nil
		}
	}
	return nil, fmt.Errorf("%s has no version %s", c.Hub.GroupKind(), apiVersion)
}

func decode(raw []byte, object runtime.Object) error {
	if err := json.Unmarshal(raw, object); err != nil {
		return fmt.Errorf("not a valid object: %w", err)
	}
	return nil
}

// carryMetadata copies the metadata of the original to a converted object that has none. The API server rejects
// objects without their metadata.
func carryMetadata(raw []byte, converted runtime.Object) error {
	accessor, err := meta.Accessor(converted)
	if err != nil || accessor.GetName() != "" || accessor.GetGenerateName() != "" || accessor.GetUID() != "" {
		return err
	}
	var original struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &original); err != nil || original.Metadata == nil {
		return err
	}
	// Decoding keeps the fields that are already set.
	return decode(append(append([]byte(`{"metadata":`), original.Metadata...), '}'), converted)
}
