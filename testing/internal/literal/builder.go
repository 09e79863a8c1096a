// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"reflect"
	"slices"
	"strings"
)

// builtinConfigurations is the path of the apply configurations of Kubernetes. Others may have no constructors.
const builtinConfigurations = "k8s.io/client-go/applyconfigurations/"

// builder prints a pointer to an apply configuration as people write it: with its constructor and With methods. It
// reports false if that is not possible.
func (p *printer) builder(v reflect.Value) (string, bool) {
	if v.Kind() != reflect.Pointer || v.IsNil() || !strings.HasPrefix(v.Type().Elem().PkgPath(), builtinConfigurations) {
		return "", false
	}
	name, ok := strings.CutSuffix(v.Type().Elem().Name(), "ApplyConfiguration")
	if !ok {
		return "", false
	}
	arguments, set, ok := constructorArguments(v.Elem(), name)
	if !ok {
		return "", false
	}
	calls, ok := p.withCalls(v.Type(), v.Elem(), set)
	if !ok {
		return "", false
	}
	calls = append([]string{p.of(v.Type().Elem().PkgPath(), name+"("+arguments+")")}, calls...)
	if line := strings.Join(calls, "."); fitsLine(line) {
		return line, true
	}
	return strings.Join(calls, ".\n"), true
}

// clusterKinds are cluster-scoped kinds. Their constructors have no parameter for a namespace.
var clusterKinds = []string{
	"Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "StorageClass", "CSIDriver", "CSINode",
	"VolumeAttachment",
	"PriorityClass", "RuntimeClass", "IngressClass", "CertificateSigningRequest", "MutatingWebhookConfiguration",
	"ValidatingWebhookConfiguration",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}

// constructorArguments returns the arguments of the constructor, and which fields it sets.
func constructorArguments(v reflect.Value, name string) (arguments string, set []string, ok bool) {
	if !v.FieldByName("TypeMetaApplyConfiguration").IsValid() {
		return "", nil, true
	}
	if meta := v.FieldByName("ObjectMetaApplyConfiguration"); !meta.IsValid() || meta.IsNil() {
		return "", nil, false
	}
	set = []string{"Kind", "APIVersion", "Name"}
	if !slices.Contains(clusterKinds, name) {
		set = append(set, "Namespace")
	}
	texts := make([]string, len(set))
	for i, field := range set {
		text, _ := v.FieldByName(field).Interface().(*string)
		if text == nil {
			return "", nil, false
		}
		texts[i] = *text
	}
	path := v.Type().PkgPath()
	if texts[0] != name || !strings.HasSuffix("/"+texts[1], path[strings.LastIndex(path, "/"):]) {
		return "", nil, false
	}
	for i, text := range texts {
		texts[i] = quote(text)
	}
	return strings.Join(texts[2:], ", "), set, true
}

// withCalls prints the calls that set the fields of a configuration, and the calls that set fields of embedded structs.
func (p *printer) withCalls(builder reflect.Type, v reflect.Value, set []string) ([]string, bool) {
	var calls []string
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		if value.IsZero() || slices.Contains(set, field.Name) {
			continue
		}
		if field.Anonymous {
			embedded, ok := p.withCalls(builder, reflect.Indirect(value), set)
			if !ok {
				return nil, false
			}
			calls = append(calls, embedded...)
			continue
		}
		method, ok := builder.MethodByName("With" + field.Name)
		if !ok || method.Type.NumIn() != 2 {
			return nil, false
		}
		arguments, ok := p.withArguments(value, method.Type.In(1), method.Type.IsVariadic())
		if !ok {
			return nil, false
		}
		calls = append(calls, call(method.Name, arguments))
	}
	return calls, true
}

// withArguments prints the arguments of the method that sets a field.
func (p *printer) withArguments(v reflect.Value, parameter reflect.Type, variadic bool) ([]string, bool) {
	switch {
	case variadic && v.Kind() == reflect.Slice && v.Len() > 0:
		var arguments []string
		for i := range v.Len() {
			argument := v.Index(i)
			if parameter.Elem() == reflect.PointerTo(argument.Type()) {
				argument = argument.Addr()
			}
			if parameter.Elem() != argument.Type() {
				return nil, false
			}
			arguments = append(arguments, p.print(argument, inferred))
		}
		return arguments, true
	case variadic, v.Kind() == reflect.Map && v.Len() == 0:
		return nil, false
	case v.Kind() == reflect.Pointer && v.Type().Elem() == parameter:
		return []string{p.print(v.Elem(), inferred)}, true
	default:
		return []string{p.print(v, inferred)}, v.Type() == parameter
	}
}
