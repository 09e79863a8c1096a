// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"

	"trueup.dev/internal/memapi/kinds"
)

// asTable reports whether a request asks for a Table.
func (r *request) asTable() bool { return strings.Contains(r.Header.Get("Accept"), "as=Table") }

// column is a column of a table.
type column struct {
	metav1.TableColumnDefinition

	value func(obj map[string]any) any
}

// table returns an object or a list as a Table.
func (r *request) table(content any) (*metav1.Table, error) {
	columns := columnsOf(r.kind)
	table := &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()}}
	for _, c := range columns {
		table.ColumnDefinitions = append(table.ColumnDefinitions, c.TableColumnDefinition)
	}
	var items []unstructured.Unstructured
	switch content := content.(type) {
	case *unstructured.UnstructuredList:
		items = content.Items
		table.ResourceVersion, table.Continue = content.GetResourceVersion(), content.GetContinue()
		table.RemainingItemCount = content.GetRemainingItemCount()
	case *unstructured.Unstructured:
		items = append(items, *content)
		table.ResourceVersion = content.GetResourceVersion()
	default:
		return nil, fmt.Errorf("%T cannot be shown as a table", content)
	}
	table.Rows = make([]metav1.TableRow, 0, len(items))
	for i := range items {
		table.Rows = append(table.Rows, r.row(columns, items[i].Object))
	}
	return table, nil
}

func (r *request) row(columns []column, obj map[string]any) metav1.TableRow {
	row := metav1.TableRow{Cells: make([]any, 0, len(columns))}
	for _, c := range columns {
		row.Cells = append(row.Cells, c.value(obj))
	}
	switch metav1.IncludeObjectPolicy(r.query.Get("includeObject")) {
	case metav1.IncludeNone:
	case metav1.IncludeObject:
		full := runtime.DeepCopyJSON(obj)
		full["apiVersion"], full["kind"] = r.kind.GroupVersion().String(), r.kind.Kind
		row.Object.Object = &unstructured.Unstructured{Object: full}
	default:
		row.Object.Object = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": metav1.SchemeGroupVersion.String(), "kind": "PartialObjectMetadata", "metadata": obj["metadata"],
		}}
	}
	return row
}

var metadataDoc = metav1.ObjectMeta{}.SwaggerDoc()

func nameColumn() column {
	return column{
		metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metadataDoc["name"]},
		func(obj map[string]any) any {
			name, _, _ := unstructured.NestedString(obj, "metadata", "name")
			return name
		},
	}
}

func ageColumn() column {
	return column{
		metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: metadataDoc["creationTimestamp"]},
		func(obj map[string]any) any {
			created, _, _ := unstructured.NestedString(obj, "metadata", "creationTimestamp")
			return age(created)
		},
	}
}

// age returns the time since a timestamp for people.
func age(timestamp string) string {
	at, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(at))
}

// columnsOf returns the columns of a kind.
func columnsOf(kind *kinds.Kind) []column {
	columns, definitions := []column{nameColumn()}, kind.Columns
	if !kind.Custom {
		definitions = builtinColumns[kind.Plural]
	}
	for _, definition := range definitions {
		path := jsonpath.New(definition.Name).AllowMissingKeys(true)
		if path.Parse("{"+definition.JSONPath+"}") != nil {
			continue
		}
		columns = append(columns, column{
			metav1.TableColumnDefinition{
				Name: definition.Name, Type: definition.Type, Format: definition.Format, Priority: definition.Priority,
				Description: definition.Description,
			},
			func(obj map[string]any) any { return cell(path, definition.Type, obj) },
		})
	}
	if !kind.Custom || len(definitions) == 0 {
		columns = append(columns, ageColumn())
	}
	return columns
}

// cell returns the value of a field. Values of another type than the type of the column are not shown.
// (k8s.io/apiextensions-apiserver, pkg/registry/customresource/tableconvertor)
func cell(path *jsonpath.JSONPath, kind string, obj map[string]any) any {
	results, err := path.FindResults(obj)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	if value == nil {
		return nil
	}
	switch kind {
	case "integer":
		switch value := value.(type) {
		case int64:
			return value
		case float64:
			return int64(value)
		}
		return nil
	case "number":
		switch value := value.(type) {
		case int64:
			return float64(value)
		case float64:
			return value
		}
		return nil
	case "boolean":
		if value, ok := value.(bool); ok {
			return value
		}
		return nil
	case "date":
		if value, ok := value.(string); ok {
			return age(value)
		}
		return "<invalid>"
	}
	var text strings.Builder
	if err := path.PrintResults(&text, results[0]); err != nil {
		return nil
	}
	return text.String()
}
