// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/defaults"
	"trueup.dev/internal/difference"
	"trueup.dev/observe"
)

// comparer compares objects of a kind before they are written. The zero value is ready to use. It is safe for
// concurrent use.
type comparer[T client.Object] struct {
	schemas  defaults.Schemas
	carriers carriers
}

// copyToCompare returns a copy that shares its managed fields. They are large and are never changed in place.
func (c *comparer[T]) copyToCompare(obj T) T {
	value := reflect.ValueOf(obj).Elem()
	if _, ok := any(obj).(runtime.Unstructured); ok || value.Kind() != reflect.Struct || len(obj.GetManagedFields()) == 0 {
		return obj.DeepCopyObject().(T)
	}
	copied := c.carriers.copyPart(obj, func(carrier reflect.Value) {
		carrier.Set(value)
		carrier.Addr().Interface().(client.Object).SetManagedFields(nil)
	})
	copied.SetManagedFields(obj.GetManagedFields())
	return copied.(T)
}

// withDefaults returns a copy of current, which is about to be written, with the defaults of the API server. It reports
// whether all defaults are known. An object without a UID was not read from an API server but, for example, from a fake
// client: its defaults are unknown. withDefaults does not change its arguments.
func (c *comparer[T]) withDefaults(w writer, current, actual T) (filled T, known bool) {
	if actual.GetUID() == "" {
		return current, false
	}
	filled = c.copyToCompare(current)
	if defaults.Update(filled, actual) {
		defaults.KeepUnset(filled, current, actual)
		return filled, true
	}
	mayExplain := mayBeDefaults(difference.Between(actual, current))
	byServer, known := withSchemaDefaults(w.ctx, w.log, w.config, &c.schemas, current, mayExplain)
	if !known {
		return current, false
	}
	byServer.SetManagedFields(actual.GetManagedFields())
	return byServer.(T), true
}

// withSchemaDefaults returns a copy of a custom resource with the defaults of its schema, and reports whether the
// schema is known. It reads the schema from the server only if defaults may explain all differences to the stored
// object.
func withSchemaDefaults(
	ctx context.Context, log logr.Logger, config Config, schemas *defaults.Schemas, obj client.Object, mayExplain bool,
) (filled client.Object, known bool) {
	if config.Client == nil || config.Discovery == nil {
		return nil, false
	}
	kind, err := config.GroupVersionKindFor(obj)
	if err != nil {
		return nil, false
	}
	schema, known, fresh, err := schemas.For(config.Discovery, kind, !mayExplain)
	if err != nil && fresh {
		config.Hub().Report(ctx, &observe.AttemptFailed{
			Attempt: observe.ReadSchema, Kind: kind.GroupKind(), Err: err,
		})
		log.Info("unable to read the defaults of a kind, redundant writes are possible",
			"kind", kind.GroupKind().String(), "reason", err.Error())
	}
	if err != nil || !known {
		return nil, false
	}
	if filled, err = filledIn(obj, schema); err != nil {
		return nil, false
	}
	return filled, true
}

// filledIn returns a copy of an object with the defaults of a schema.
func filledIn(obj client.Object, schema *defaults.Schema) (client.Object, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		copied := u.DeepCopyObject().(runtime.Unstructured)
		schema.Fill(copied.UnstructuredContent())
		return copied.(client.Object), nil
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	schema.Fill(content)
	if data, err = json.Marshal(content); err != nil {
		return nil, err
	}
	filled := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	return filled, json.Unmarshal(data, filled)
}
