// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"encoding/json"
	"reflect"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"trueup.dev/internal/defaults"
	"trueup.dev/internal/difference"
)

var schemaFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "trueup_schema_failures_total",
	Help: "Number of failed attempts to read the defaults of a kind from the API server. " +
		"The next attempt follows after ten minutes.",
}, []string{"kind"})

func init() {
	metrics.Registry.MustRegister(schemaFailures)
}

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
	byServer, known := withSchemaDefaults(w.log, w.config, &c.schemas, current, mayExplain)
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
	log logr.Logger, config Config, schemas *defaults.Schemas, obj client.Object, mayExplain bool,
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
		schemaFailures.WithLabelValues(kind.Kind).Inc()
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
