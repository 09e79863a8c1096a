// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"reflect"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
)

// What a case has in common with an ExpectConfig, its config has too: a field that is added to both and forgotten in
// between would never be asserted.
func TestCasesHandAllFieldsToTheirConfig(t *testing.T) {
	scheme := fixture.NewScheme()
	tests := map[string]struct {
		tc     any
		config func(tc any) *ExpectConfig
	}{
		"Reconciler": {
			tc:     &ReconcilerTestCase{},
			config: func(tc any) *ExpectConfig { return tc.(*ReconcilerTestCase).expectConfig(scheme) },
		},
		"SubReconciler": {
			tc:     &SubReconcilerTestCase[client.Object]{},
			config: func(tc any) *ExpectConfig { return tc.(*SubReconcilerTestCase[client.Object]).expectConfig(scheme) },
		},
		"AdmissionWebhook": {
			tc:     &AdmissionWebhookTestCase{},
			config: func(tc any) *ExpectConfig { return tc.(*AdmissionWebhookTestCase).expectConfig(scheme) },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tc := reflect.ValueOf(tt.tc).Elem()
			var shared []string
			for field := range reflect.TypeFor[ExpectConfig]().Fields() {
				// The run of a case gives the name.
				if value := tc.FieldByName(field.Name); field.IsExported() && field.Name != "Name" && value.IsValid() {
					shared = append(shared, field.Name)
					value.Set(nonZero(t, field.Type))
				}
			}
			if len(shared) < 15 {
				t.Fatalf("found only these fields in common: %q", shared)
			}
			config := reflect.ValueOf(tt.config(tt.tc)).Elem()
			for _, field := range shared {
				if config.FieldByName(field).IsZero() {
					t.Errorf("%s does not reach the config", field)
				}
			}
			if config.FieldByName("Scheme").IsZero() {
				t.Error("Scheme does not reach the config")
			}
		})
	}
}

// nonZero returns a value of the type that is not zero.
func nonZero(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	switch of.Kind() {
	case reflect.Slice:
		return reflect.MakeSlice(of, 1, 1)
	case reflect.Bool:
		return reflect.ValueOf(true)
	case reflect.Func:
		return reflect.MakeFunc(of, func([]reflect.Value) []reflect.Value { return nil })
	case reflect.Interface:
		return reflect.ValueOf(DefaultDiffer)
	default:
		t.Fatalf("no value for a %s: add a case", of)
		return reflect.Value{}
	}
}
