// SPDX-License-Identifier: Apache-2.0

package states

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

var group = schema.GroupVersion{Group: "states.trueup.dev", Version: "v1"}

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err) // only a mistake in this package can cause an error
	}
	s.AddKnownTypes(group, &App{}, &AppList{})
	metav1.AddToGroupVersion(s, group)
	return s
}

// App is the primary kind of all entries.
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AppSpec   `json:"spec,omitempty"`
	Status AppStatus `json:"status,omitempty"`
}

// AppSpec is the desired state. Each entry uses some fields.
type AppSpec struct {
	Replicas    *int32            `json:"replicas,omitempty"`
	Image       string            `json:"image,omitempty"`
	Version     string            `json:"version,omitempty"`
	Host        string            `json:"host,omitempty"`
	ServiceName string            `json:"serviceName,omitempty"`
	Storage     string            `json:"storage,omitempty"`
	Timeout     string            `json:"timeout,omitempty"`
	Mode        string            `json:"mode,omitempty"`
	Metrics     bool              `json:"metrics,omitempty"`
	Paused      bool              `json:"paused,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Config      map[string]string `json:"config,omitempty"`
	Args        []string          `json:"args,omitempty"`
	Env         []Variable        `json:"env,omitempty"`
	Ports       []Port            `json:"ports,omitempty"`
	TLS         *TLS              `json:"tls,omitempty"`
}

// Variable is an environment variable.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// Port is a port of the service.
type Port struct {
	Name string `json:"name"`
	Port int32  `json:"port"`
}

// TLS configures encryption.
type TLS struct {
	SecretName string `json:"secretName"`
}

// AppStatus is the observed state.
type AppStatus struct {
	Phase      string             `json:"phase,omitempty"`
	Message    string             `json:"message,omitempty"`
	Members    []string           `json:"members,omitempty"`
	Peak       int32              `json:"peak,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (a *App) DeepCopyObject() runtime.Object { return a.DeepCopy() }

// DeepCopy returns a copy that shares nothing.
func (a *App) DeepCopy() *App {
	c := *a
	c.ObjectMeta = *a.ObjectMeta.DeepCopy()
	if a.Spec.Replicas != nil {
		c.Spec.Replicas = new(*a.Spec.Replicas)
	}
	if a.Spec.TLS != nil {
		c.Spec.TLS = new(*a.Spec.TLS)
	}
	c.Spec.Labels, c.Spec.Config = maps.Clone(a.Spec.Labels), maps.Clone(a.Spec.Config)
	c.Spec.Args, c.Spec.Env, c.Spec.Ports = slices.Clone(a.Spec.Args), slices.Clone(a.Spec.Env), slices.Clone(a.Spec.Ports)
	c.Status.Members, c.Status.Conditions = slices.Clone(a.Status.Members), slices.Clone(a.Status.Conditions)
	return &c
}

// AppList is a list of apps.
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []App `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *AppList) DeepCopyObject() runtime.Object {
	c := *l
	l.DeepCopyInto(&c.ListMeta)
	c.Items = slices.Clone(l.Items)
	for i := range c.Items {
		c.Items[i] = *l.Items[i].DeepCopy()
	}
	return &c
}

var (
	text    = apiextensionsv1.JSONSchemaProps{Type: "string"}
	flag    = apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	textMap = apiextensionsv1.JSONSchemaProps{
		Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &text},
	}
)

func listOf(item apiextensionsv1.JSONSchemaProps, keys ...string) apiextensionsv1.JSONSchemaProps {
	list := apiextensionsv1.JSONSchemaProps{
		Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item},
	}
	if len(keys) > 0 {
		list.XListType, list.XListMapKeys = new("map"), keys
	}
	return list
}

// schemas has the schema of each field.
func schemas() map[string]apiextensionsv1.JSONSchemaProps {
	return map[string]apiextensionsv1.JSONSchemaProps{
		"replicas": {Type: "integer", Minimum: new(0.0), Maximum: new(5.0)},
		"image":    {Type: "string", MinLength: new(int64(1))},
		"version":  text, "host": text, "storage": text, "timeout": text, "metrics": flag, "paused": flag,
		"serviceName": {Type: "string", Pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$", MaxLength: new(int64(20))},
		"mode": {
			Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"service"`)}, {Raw: []byte(`"batch"`)}},
			Default: &apiextensionsv1.JSON{Raw: []byte(`"service"`)},
		},
		"labels": textMap, "config": textMap, "args": listOf(text),
		"env": listOf(apiextensionsv1.JSONSchemaProps{
			Type: "object", Required: []string{"name"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"name": {Type: "string", Pattern: "^[A-Za-z_]+$"}, "value": text,
			},
		}, "name"),
		"ports": listOf(apiextensionsv1.JSONSchemaProps{
			Type: "object", Required: []string{"name", "port"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"name": {Type: "string", Pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$", MaxLength: new(int64(15))},
				"port": {Type: "integer", Minimum: new(1.0), Maximum: new(65535.0)},
			},
		}, "name"),
		"tls": {
			Type: "object", Required: []string{"secretName"},
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"secretName": text},
		},
	}
}

// definition returns the definition of apps that have only some fields.
func definition(fields []string) *apiextensionsv1.CustomResourceDefinition {
	properties := schemas()
	maps.DeleteFunc(properties, func(name string, _ apiextensionsv1.JSONSchemaProps) bool {
		return !slices.Contains(fields, name)
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "apps." + group.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "apps", Singular: "app", Kind: "App"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: group.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec":   {Type: "object", Properties: properties},
						"status": {Type: "object", XPreserveUnknownFields: new(true)},
					},
				}},
			}},
		},
	}
}
