// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

const crdKind = "CustomResourceDefinition"

// definition is one CustomResourceDefinition and where it came from.
type definition struct {
	origin string
	crd    *apiextensionsv1.CustomResourceDefinition
	// object is what is sent to the API: what the source says, not what this version of the Go type knows of it.
	object *unstructured.Unstructured
}

// readDefinitions returns the definitions in sources, each name once, and reports everything that is wrong with them.
func readDefinitions(sources []any) ([]definition, error) {
	var all []definition
	var errs []error
	for i, src := range sources {
		found, err := readSource(fmt.Sprintf("source %d", i+1), src)
		all = append(all, found...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	byName := map[string]definition{}
	var unique []definition
	for _, d := range all {
		first, ok := byName[d.crd.Name]
		switch {
		case !ok:
			byName[d.crd.Name] = d
			unique = append(unique, d)
		case !reflect.DeepEqual(first.object.Object, d.object.Object):
			errs = append(errs, fmt.Errorf("%s: defines %s differently from %s", d.origin, d.crd.Name, first.origin))
		}
	}
	return unique, errors.Join(errs...)
}

func readSource(origin string, src any) ([]definition, error) {
	switch src := src.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		return readObjects(func(int) string { return origin }, src)
	case []*apiextensionsv1.CustomResourceDefinition:
		return readObjects(func(i int) string { return fmt.Sprintf("%s: element %d", origin, i) }, src...)
	case string:
		info, err := os.Stat(src)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", origin, err)
		case !info.IsDir():
			content, err := os.ReadFile(src)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", origin, err)
			}
			return readFile(src, content)
		}
		return readFS(os.DirFS(src), func(name string) string { return filepath.Join(src, filepath.FromSlash(name)) }, src)
	case fs.FS:
		return readFS(src, func(name string) string { return origin + ": " + name }, origin)
	default:
		return nil, fmt.Errorf("%s: cannot read definitions from a %T: want *CustomResourceDefinition, []*CustomResourceDefinition, "+
			"the path of a file or folder, or an fs.FS", origin, src)
	}
}

func readObjects(origin func(i int) string, crds ...*apiextensionsv1.CustomResourceDefinition) ([]definition, error) {
	var found []definition
	var errs []error
	for i, crd := range crds {
		if crd == nil {
			errs = append(errs, fmt.Errorf("%s: nil", origin(i)))
			continue
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", origin(i), err))
			continue
		}
		// Go objects rarely carry their own type.
		object["apiVersion"], object["kind"] = apiextensionsv1.SchemeGroupVersion.String(), crdKind
		d, err := newDefinition(origin(i), object)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, d)
	}
	return found, errors.Join(errs...)
}

// readFS reads every YAML and JSON file in fsys, in the order of their paths.
func readFS(fsys fs.FS, origin func(name string) string, root string) ([]definition, error) {
	var found []definition
	var errs []error
	files := 0
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || !isManifest(name) {
			return nil
		}
		files++
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		inFile, err := readFile(origin(name), content)
		found = append(found, inFile...)
		if err != nil {
			errs = append(errs, err)
		}
		return nil
	})
	if err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", root, err))
	}
	if err == nil && files == 0 {
		errs = append(errs, fmt.Errorf("%s: no .yaml, .yml or .json file in it", root))
	}
	return found, errors.Join(errs...)
}

func isManifest(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// readFile reads the documents of a YAML or JSON file.
func readFile(name string, content []byte) ([]definition, error) {
	documents := yamlDocuments
	if strings.EqualFold(path.Ext(name), ".json") {
		documents = jsonDocuments
	}
	var found []definition
	var errs []error
	number := 0
	for object, err := range documents(content) {
		number++
		origin := fmt.Sprintf("%s: document %d", name, number)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", origin, err))
			continue
		}
		if object == nil {
			continue // Blanks and comments.
		}
		d, err := newDefinition(origin, object)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, d)
	}
	if len(found) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%s: no document in it", name))
	}
	return found, errors.Join(errs...)
}

var documentSeparator = regexp.MustCompile(`(?m)^---(?:[ \t].*)?\r?$`)

// yamlDocuments yields the documents between lines of "---"; a document without content is nil. A first separator, with nothing but blanks and comments
// before it, separates nothing.
func yamlDocuments(content []byte) func(yield func(map[string]any, error) bool) {
	return func(yield func(map[string]any, error) bool) {
		begin := 0
		ends := append(documentSeparator.FindAllIndex(content, -1), []int{len(content), len(content)})
		for i, end := range ends {
			document := content[begin:end[0]]
			// What precedes becomes empty lines, so that line numbers in messages are those of the file.
			padding := bytes.Repeat([]byte{'\n'}, bytes.Count(content[:begin], []byte{'\n'}))
			begin = end[1]
			text, err := yaml.YAMLToJSONStrict(append(padding, document...))
			var object map[string]any
			if err == nil {
				object, err = jsonObject(text)
			}
			if i == 0 && len(ends) > 1 && err == nil && object == nil {
				continue
			}
			if !yield(object, err) {
				return
			}
		}
	}
}

// jsonDocuments yields the JSON values in content, which may follow one another.
func jsonDocuments(content []byte) func(yield func(map[string]any, error) bool) {
	return func(yield func(map[string]any, error) bool) {
		decoder := json.NewDecoder(bytes.NewReader(content))
		for {
			var text json.RawMessage
			err := decoder.Decode(&text)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				var syntax *json.SyntaxError
				if errors.As(err, &syntax) {
					line := 1 + bytes.Count(content[:min(syntax.Offset, int64(len(content)))], []byte{'\n'})
					err = fmt.Errorf("line %d: %w", line, err)
				}
				yield(nil, err)
				return // There is no telling where the next value begins.
			}
			object, err := jsonObject(text)
			if !yield(object, err) {
				return
			}
		}
	}
}

// jsonObject returns the object in text, its integers as such, and nil for null.
func jsonObject(text []byte) (map[string]any, error) {
	var value any
	if err := utiljson.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, errors.New("not an object")
	}
	return object, nil
}

// newDefinition checks that object is a definition that can be installed, and drops what only the API server may write.
func newDefinition(origin string, object map[string]any) (definition, error) {
	d := definition{origin: origin, object: &unstructured.Unstructured{Object: object}, crd: &apiextensionsv1.CustomResourceDefinition{}}
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if want := apiextensionsv1.SchemeGroupVersion.String(); apiVersion != want || kind != crdKind {
		return d, fmt.Errorf("%s: apiVersion %q, kind %q: want %s, %s", origin, apiVersion, kind, want, crdKind)
	}
	unstructured.RemoveNestedField(object, "status")
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(object, "metadata", field)
	}
	// By way of JSON, because its errors name the field.
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, d.crd)
	}
	if err != nil {
		return d, fmt.Errorf("%s: %w", origin, err)
	}
	if d.crd.Name == "" {
		return d, fmt.Errorf("%s: metadata.name is missing", origin)
	}
	d.origin = fmt.Sprintf("%s (%s)", origin, d.crd.Name)
	return d, nil
}
