// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Schema holds the defaults of a custom resource, as published by the API server.
type Schema struct {
	def        any
	nullable   bool
	properties map[string]*Schema
	// entries applies to the values of maps, items to the items of lists.
	entries, items *Schema
}

// published is the part of an OpenAPI v3 schema that contains defaults.
type published struct {
	Default              json.RawMessage           `json:"default"`
	Nullable             bool                      `json:"nullable"`
	Properties           map[string]*published     `json:"properties"`
	AdditionalProperties json.RawMessage           `json:"additionalProperties"`
	Items                *published                `json:"items"`
	Ref                  string                    `json:"$ref"`
	AllOf                []*published              `json:"allOf"`
	Kinds                []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// errReference is returned for the schema of a kind that is not a custom resource. Such a schema has references to
// others, and its defaults are the defaults of Go types.
var errReference = errors.New("schema has references")

// readSchemas returns the schemas of the custom resources in an OpenAPI v3 document.
func readSchemas(document []byte) (map[schema.GroupVersionKind]*Schema, error) {
	var doc struct {
		Components struct {
			Schemas map[string]*published `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("read OpenAPI document: %w", err)
	}
	schemas := map[schema.GroupVersionKind]*Schema{}
	for _, p := range doc.Components.Schemas {
		if p == nil || len(p.Kinds) != 1 {
			continue // a schema of several kinds does not belong to a custom resource
		}
		delete(p.Properties, "metadata") // has no defaults, and is the only reference of a custom resource
		s, err := p.schema()
		if errors.Is(err, errReference) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read OpenAPI schema of %s: %w", p.Kinds[0].Kind, err)
		}
		schemas[p.Kinds[0]] = s
	}
	return schemas, nil
}

// schema returns nil if the schema has no defaults.
func (p *published) schema() (*Schema, error) {
	if p == nil {
		return nil, nil
	}
	if p.Ref != "" || slices.ContainsFunc(p.AllOf, func(part *published) bool { return part != nil && part.Ref != "" }) {
		return nil, errReference
	}
	s := &Schema{nullable: p.Nullable}
	if len(p.Default) > 0 {
		if err := utiljson.Unmarshal(p.Default, &s.def); err != nil {
			return nil, err
		}
	}
	for name, property := range p.Properties {
		inside, err := property.schema()
		if err != nil {
			return nil, err
		}
		if inside != nil {
			if s.properties == nil {
				s.properties = map[string]*Schema{}
			}
			s.properties[name] = inside
		}
	}
	entries := &published{}
	if len(p.AdditionalProperties) == 0 || json.Unmarshal(p.AdditionalProperties, entries) != nil {
		entries = nil // true or false
	}
	var err error
	if s.entries, err = entries.schema(); err != nil {
		return nil, err
	}
	if s.items, err = p.Items.schema(); err != nil {
		return nil, err
	}
	if s.def == nil && s.properties == nil && s.entries == nil && s.items == nil {
		return nil, nil
	}
	return s, nil
}

// Fill sets the defaults in the content of an object, as the API server does when it reads it. The content must be
// decoded JSON.
func (s *Schema) Fill(content any) {
	if s == nil {
		return
	}
	switch content := content.(type) {
	case map[string]any:
		for name, property := range s.properties {
			value, found := content[name]
			if property.def != nil && (!found || value == nil && !property.nullable) {
				content[name] = runtime.DeepCopyJSONValue(property.def)
			}
		}
		for name, value := range content {
			if property, known := s.properties[name]; known {
				property.Fill(value)
			} else {
				s.entries.Fill(value)
			}
		}
	case []any:
		for _, item := range content {
			s.items.Fill(item)
		}
	}
}
