// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// parser reads manifests of one type from Go objects, files and directories.
type parser[T any] struct {
	what    string              // what it reads, for messages
	want    string              // the accepted Go types, for messages
	version schema.GroupVersion // version of Go objects; their kind is the name of their type
	// objects returns the Go objects in a source, or false if it has another type.
	objects func(src any) ([]runtime.Object, bool)
	// parse parses a document. A document in a file is skipped if the error is errOtherKind.
	parse func(origin string, object map[string]any) (T, error)
}

var errOtherKind = errors.New("another kind")

// readAll returns the contents of all sources. Its error lists every mistake.
func (p *parser[T]) readAll(sources []any) ([]T, error) {
	var all []T
	var errs []error
	for i, src := range sources {
		found, err := p.read(fmt.Sprintf("source %d", i+1), src)
		all = append(all, found...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

// read returns the contents of a source.
func (p *parser[T]) read(origin string, src any) ([]T, error) {
	switch src := src.(type) {
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
			return p.readFile(src, content)
		}
		return p.readFS(os.DirFS(src), func(name string) string { return filepath.Join(src, filepath.FromSlash(name)) }, src)
	case fs.FS:
		return p.readFS(src, func(name string) string { return origin + ": " + name }, origin)
	}
	objects, ok := p.objects(src)
	if !ok {
		return nil, fmt.Errorf(
			"%s: cannot read %s from a %T: want %s, the path of a file or directory, or an fs.FS", origin, p.what, src, p.want,
		)
	}
	return p.readObjects(func(i int) string {
		if reflect.TypeOf(src).Kind() == reflect.Slice {
			return fmt.Sprintf("%s: element %d", origin, i)
		}
		return origin
	}, objects)
}

func (p *parser[T]) readObjects(origin func(i int) string, objects []runtime.Object) ([]T, error) {
	var found []T
	var errs []error
	for i, typed := range objects {
		if reflect.ValueOf(typed).IsNil() {
			errs = append(errs, fmt.Errorf("%s: nil", origin(i)))
			continue
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", origin(i), err))
			continue
		}
		// The kind of Go objects is usually not set.
		object["apiVersion"], object["kind"] = p.version.String(), reflect.TypeOf(typed).Elem().Name()
		one, err := p.parse(origin(i), object)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, one)
	}
	return found, errors.Join(errs...)
}

// readFS reads every YAML and JSON file in fsys, in the order of their paths.
func (p *parser[T]) readFS(fsys fs.FS, origin func(name string) string, root string) ([]T, error) {
	var found []T
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
		inFile, err := p.readFile(origin(name), content)
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
		errs = append(errs, fmt.Errorf("%s: contains no .yaml, .yml or .json file", root))
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
func (p *parser[T]) readFile(name string, content []byte) ([]T, error) {
	documents := yamlDocuments
	if strings.EqualFold(path.Ext(name), ".json") {
		documents = jsonDocuments
	}
	var found []T
	var errs []error
	number, empty := 0, true
	for object, err := range documents(content) {
		number++
		origin := fmt.Sprintf("%s: document %d", name, number)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", origin, err))
			continue
		}
		if object == nil {
			continue // blanks and comments
		}
		empty = false
		one, err := p.parse(origin, object)
		if errors.Is(err, errOtherKind) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, one)
	}
	if empty && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%s: contains no document", name))
	}
	return found, errors.Join(errs...)
}

var documentSeparator = regexp.MustCompile(`(?m)^---(?:[ \t].*)?\r?$`)

// yamlDocuments yields the documents between lines of "---"; a document without content is nil. A first separator after
// only blanks and comments does not end a document.
func yamlDocuments(content []byte) func(yield func(map[string]any, error) bool) {
	return func(yield func(map[string]any, error) bool) {
		begin := 0
		ends := append(documentSeparator.FindAllIndex(content, -1), []int{len(content), len(content)})
		for i, end := range ends {
			document := content[begin:end[0]]
			// Earlier documents become empty lines, so that line numbers in messages are the line numbers of the file.
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
				return // the start of the next value cannot be determined
			}
			object, err := jsonObject(text)
			if !yield(object, err) {
				return
			}
		}
	}
}

// jsonObject returns the object in text, or nil for null. Integers stay integers.
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

func asObjects[T runtime.Object](typed []T) []runtime.Object {
	objects := make([]runtime.Object, len(typed))
	for i := range typed {
		objects[i] = typed[i]
	}
	return objects
}

const crdKind = "CustomResourceDefinition"

// definition is a CustomResourceDefinition and its origin.
type definition struct {
	origin string
	crd    *apiextensionsv1.CustomResourceDefinition
	// object is sent to the API. It is the source itself, because it may have fields that this version of the Go type does
	// not have.
	object *unstructured.Unstructured
}

// readDefinitions returns the definitions in sources, each name once. Its error lists all problems.
func readDefinitions(sources []any) ([]definition, error) {
	all, err := crdParser.readAll(sources)
	errs := []error{err}
	if err == nil && len(all) == 0 && slices.ContainsFunc(sources, holdsFiles) {
		errs = append(errs, fmt.Errorf("the sources contain no %s", crdKind))
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

// holdsFiles reports whether a source is not a Go object, which need not exist.
func holdsFiles(source any) bool {
	switch source.(type) {
	case string, fs.FS:
		return true
	}
	return false
}

var crdParser = &parser[definition]{
	what:    "definitions",
	want:    "*CustomResourceDefinition, []*CustomResourceDefinition",
	version: apiextensionsv1.SchemeGroupVersion,
	objects: func(src any) ([]runtime.Object, bool) {
		switch src := src.(type) {
		case *apiextensionsv1.CustomResourceDefinition:
			return []runtime.Object{src}, true
		case []*apiextensionsv1.CustomResourceDefinition:
			return asObjects(src), true
		}
		return nil, false
	},
	parse: newDefinition,
}

// newDefinition checks that object is a definition that can be installed, and removes the fields that only the API
// server may write.
func newDefinition(origin string, object map[string]any) (definition, error) {
	d := definition{
		origin: origin,
		object: &unstructured.Unstructured{Object: object},
		crd:    &apiextensionsv1.CustomResourceDefinition{},
	}
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if group, _, _ := strings.Cut(apiVersion, "/"); group != apiextensionsv1.GroupName && kind != crdKind {
		return d, errOtherKind
	}
	if want := apiextensionsv1.SchemeGroupVersion.String(); apiVersion != want || kind != crdKind {
		return d, fmt.Errorf("%s: apiVersion %q, kind %q: want %s, %s", origin, apiVersion, kind, want, crdKind)
	}
	unstructured.RemoveNestedField(object, "status")
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(object, "metadata", field)
	}
	// Convert through JSON, because its errors contain the name of the field.
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, d.crd)
	}
	if err != nil {
		return d, fmt.Errorf("%s: %w", origin, err)
	}
	if d.crd.Name == "" {
		return d, fmt.Errorf("%s: metadata.name is required", origin)
	}
	d.origin = fmt.Sprintf("%s (%s)", origin, d.crd.Name)
	return d, nil
}

const (
	mutatingKind   = "MutatingWebhookConfiguration"
	validatingKind = "ValidatingWebhookConfiguration"
)

// webhookConfiguration is a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration and its origin.
type webhookConfiguration struct {
	origin string
	object *unstructured.Unstructured
}

var webhookParser = &parser[webhookConfiguration]{
	what: "webhook configurations",
	want: "*MutatingWebhookConfiguration, []*MutatingWebhookConfiguration, *ValidatingWebhookConfiguration, " +
		"[]*ValidatingWebhookConfiguration",
	version: admissionregistrationv1.SchemeGroupVersion,
	objects: func(src any) ([]runtime.Object, bool) {
		switch src := src.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			return []runtime.Object{src}, true
		case []*admissionregistrationv1.MutatingWebhookConfiguration:
			return asObjects(src), true
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			return []runtime.Object{src}, true
		case []*admissionregistrationv1.ValidatingWebhookConfiguration:
			return asObjects(src), true
		}
		return nil, false
	},
	parse: newWebhookConfiguration,
}

// readWebhookConfigurations returns the configurations in sources.
func readWebhookConfigurations(sources []any) ([]webhookConfiguration, error) {
	all, err := webhookParser.readAll(sources)
	if err != nil {
		return nil, err
	}
	if len(sources) > 0 && len(all) == 0 {
		return nil, fmt.Errorf("the sources contain no %s and no %s", mutatingKind, validatingKind)
	}
	return all, nil
}

func newWebhookConfiguration(origin string, object map[string]any) (webhookConfiguration, error) {
	c := webhookConfiguration{origin: origin, object: &unstructured.Unstructured{Object: object}}
	gvk := schema.FromAPIVersionAndKind(c.object.GetAPIVersion(), c.object.GetKind())
	if gvk.Group != admissionregistrationv1.GroupName || gvk.Kind != mutatingKind && gvk.Kind != validatingKind {
		return c, errOtherKind
	}
	if want := admissionregistrationv1.SchemeGroupVersion; gvk.GroupVersion() != want {
		return c, fmt.Errorf("%s: apiVersion %q: want %s", origin, c.object.GetAPIVersion(), want)
	}
	if c.object.GetName() == "" {
		return c, fmt.Errorf("%s: metadata.name is required", origin)
	}
	webhooks, _, err := unstructured.NestedSlice(object, "webhooks")
	if err != nil {
		return c, fmt.Errorf("%s: %w", origin, err)
	}
	if len(webhooks) == 0 {
		return c, fmt.Errorf("%s: webhooks: at least one is required", origin)
	}
	for i, w := range webhooks {
		if _, ok := w.(map[string]any); !ok {
			return c, fmt.Errorf("%s: webhooks[%d]: want an object, got %T", origin, i, w)
		}
	}
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(object, "metadata", field)
	}
	c.origin = fmt.Sprintf("%s (%s)", origin, c.object.GetName())
	return c, nil
}

// pathOf returns the path in a client configuration, or "".
func pathOf(clientConfig map[string]any) string {
	if path, _, _ := unstructured.NestedString(clientConfig, "service", "path"); path != "" {
		return path
	}
	text, _, _ := unstructured.NestedString(clientConfig, "url")
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return parsed.Path
}
