// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/tracker"
)

var (
	plainErrorType  = reflect.TypeOf(errors.New(""))
	contentTypeOfAC = reflect.TypeOf(client.ApplyConfigurationFromUnstructured(nil))
)

// known prints values that people create with a function rather than with a composite literal.
func (p *printer) known(v reflect.Value) (string, bool) {
	switch x := v.Interface().(type) {
	case metav1.Time:
		return p.metaTime(x.Time, "Time", "Unix", "Date"), true
	case metav1.MicroTime:
		return p.metaTime(x.Time, "MicroTime", "UnixMicro", "DateMicro"), true
	case time.Time:
		return p.instant(x, p.of("time", "Time{}"), p.of("time", "Unix"), p.of("time", "Date")), true
	case time.Duration:
		return p.duration(x), true
	case resource.Quantity:
		return p.of("k8s.io/apimachinery/pkg/api/resource", "MustParse("+quote(x.String())+")"), true
	case intstr.IntOrString:
		if x.Type == intstr.String {
			return p.of("k8s.io/apimachinery/pkg/util/intstr", "FromString("+quote(x.StrVal)+")"), true
		}
		return p.of("k8s.io/apimachinery/pkg/util/intstr", fmt.Sprintf("FromInt32(%d)", x.IntVal)), true
	case metav1.FieldsV1:
		return "*" + p.meta("NewFieldsV1("+quote(x.GetRawString())+")"), true
	case *metav1.FieldsV1:
		if x != nil {
			return p.meta("NewFieldsV1(" + quote(x.GetRawString()) + ")"), true
		}
	case labels.Selector:
		return p.labelSelector(v.Type(), x)
	case fields.Selector:
		return p.fieldSelector(v.Type(), x)
	}
	if isKitType(v.Type(), "TrackRequest") {
		return p.trackRequest(v)
	}
	switch v.Type() {
	case plainErrorType:
		return p.of("errors", "New("+quote(v.Interface().(error).Error())+")"), !v.IsNil()
	case contentTypeOfAC:
		if content := v.Elem().Field(0); !content.IsNil() {
			return p.of(
				"sigs.k8s.io/controller-runtime/pkg/client", "ApplyConfigurationFromUnstructured("+p.print(content, inferred)+")",
			), true
		}
	}
	return p.builder(v)
}

// of qualifies something in a package whose name is the last element of its path.
func (p *printer) of(path, name string) string {
	return p.qualified(path, path[strings.LastIndex(path, "/")+1:], name)
}

func (p *printer) meta(name string) string {
	return p.of("k8s.io/apimachinery/pkg/apis/meta/v1", name)
}

func (p *printer) metaTime(t time.Time, typeName, unix, date string) string {
	return p.instant(t, p.meta(typeName+"{}"), p.meta(unix), p.meta(date))
}

// instant prints a point in time in UTC: tests do not compare the location, which may have no name.
func (p *printer) instant(t time.Time, zero, unix, date string) string {
	switch t = t.UTC(); {
	case t.IsZero():
		return zero
	case t.Year() == 1970:
		return fmt.Sprintf("%s(%d, %d)", unix, t.Unix(), t.Nanosecond())
	default:
		return fmt.Sprintf("%s(%d, %s, %d, %d, %d, %d, %d, %s)", date, t.Year(), p.of("time", t.Month().String()), t.Day(),
			t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), p.of("time", "UTC"))
	}
}

// duration prints a duration as a multiple of the largest possible unit.
func (p *printer) duration(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{
		{time.Hour, "Hour"},
		{time.Minute, "Minute"},
		{time.Second, "Second"},
		{time.Millisecond, "Millisecond"},
		{time.Microsecond, "Microsecond"},
	} {
		switch {
		case d == unit.length:
			return p.of("time", unit.name)
		case d != 0 && d%unit.length == 0:
			return fmt.Sprintf("%d * %s", d/unit.length, p.of("time", unit.name))
		}
	}
	return p.of("time", fmt.Sprintf("Duration(%d)", d))
}

func (p *printer) labelSelector(t reflect.Type, s labels.Selector) (string, bool) {
	const path = "k8s.io/apimachinery/pkg/labels"
	if t.PkgPath() != path || t.Kind() == reflect.Interface {
		return "", false
	}
	if s.Empty() {
		return p.of(path, "Everything()"), true
	}
	requirements, selectable := s.Requirements()
	if !selectable {
		return p.of(path, "Nothing()"), true
	}
	set := labels.Set{}
	for _, requirement := range requirements {
		if values := requirement.ValuesUnsorted(); len(values) == 1 {
			set[requirement.Key()] = values[0]
		}
	}
	if labels.SelectorFromSet(set).String() == s.String() {
		return p.of(path, "SelectorFromSet("+p.print(reflect.ValueOf(set), explicit)+")"), true
	}
	return fmt.Sprintf(
		"func() %s { s, _ := %s(%s); return s }()", p.of(path, "Selector"), p.of(path, "Parse"), quote(s.String()),
	), true
}

func (p *printer) fieldSelector(t reflect.Type, s fields.Selector) (string, bool) {
	const path = "k8s.io/apimachinery/pkg/fields"
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() != path || t.Kind() == reflect.Interface {
		return "", false
	}
	if s.Empty() {
		return p.of(path, "Everything()"), true
	}
	requirements := s.Requirements()
	if len(requirements) == 0 {
		return p.of(path, "Nothing()"), true
	}
	one := requirements[0]
	if s.String() == fields.OneTermEqualSelector(one.Field, one.Value).String() {
		return p.of(path, "OneTermEqualSelector("+quote(one.Field)+", "+quote(one.Value)+")"), true
	}
	return p.of(path, "ParseSelectorOrDie("+quote(s.String())+")"), true
}

// kitPath is the path of the test kit, which imports this package. Its types are recognized by name.
const kitPath = "trueup.dev/testing"

func isKitType(t reflect.Type, name string) bool { return t.PkgPath() == kitPath && t.Name() == name }

// trackRequest prints a TrackRequest of the test kit.
func (p *printer) trackRequest(v reflect.Value) (string, bool) {
	ref := v.FieldByName("TrackedReference").Interface().(tracker.Reference)
	by := v.FieldByName("Tracker").Interface().(types.NamespacedName)
	if !v.FieldByName("Tracked").IsZero() || ref.Selector != nil {
		return "", false
	}
	return p.of(kitPath, fmt.Sprintf("CreateTrackRequest(%s, %s, %s, %s).By(%s, %s)", quote(ref.APIGroup),
		quote(ref.Kind), quote(ref.Namespace), quote(ref.Name), quote(by.Namespace), quote(by.Name))), true
}

// constants are the names of frequent values.
var constants = map[reflect.Type]map[string]string{
	reflect.TypeFor[metav1.ConditionStatus](): {
		"True": "ConditionTrue", "False": "ConditionFalse", "Unknown": "ConditionUnknown",
	},
	reflect.TypeFor[corev1.ConditionStatus](): {
		"True": "ConditionTrue", "False": "ConditionFalse", "Unknown": "ConditionUnknown",
	},
	reflect.TypeFor[corev1.ResourceName](): {
		"cpu": "ResourceCPU", "memory": "ResourceMemory", "storage": "ResourceStorage",
	},
	reflect.TypeFor[types.PatchType](): {
		string(types.JSONPatchType):           "JSONPatchType",
		string(types.MergePatchType):          "MergePatchType",
		string(types.StrategicMergePatchType): "StrategicMergePatchType",
		string(types.ApplyYAMLPatchType):      "ApplyYAMLPatchType",
	},
}

// constant returns the name of a value.
func (p *printer) constant(v reflect.Value) (string, bool) {
	if v.Kind() != reflect.String {
		return "", false
	}
	name, ok := constants[v.Type()][v.String()]
	if !ok {
		return "", false
	}
	packageName, _, _ := strings.Cut(v.Type().String(), ".")
	return p.qualified(v.Type().PkgPath(), packageName, name), true
}

// field prints the value of a field. The type of an event is a constant, although the field is a string.
func (p *printer) field(parent reflect.Type, name string, v reflect.Value) string {
	if isKitType(parent, "Event") && name == "Type" &&
		(v.String() == corev1.EventTypeNormal || v.String() == corev1.EventTypeWarning) {
		return p.of("k8s.io/api/core/v1", "EventType"+v.String())
	}
	return p.print(v, inferred)
}
