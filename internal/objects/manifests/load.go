// SPDX-License-Identifier: Apache-2.0

// Package manifests reads Kubernetes objects from YAML and JSON files of users. It records the position of each object,
// so that errors can contain file, document and line.
package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Document is an object and its position.
type Document struct {
	// File is the path of the file as given by the user.
	File string
	// Number is the number of the document in the file, starting at 1. Empty documents do not count.
	Number int
	// Line is the first line of the document in the file, starting at 1.
	Line int
	// Object is the content of the document.
	Object *unstructured.Unstructured
}

// Where returns the position of the document, for messages.
func (d Document) Where() string {
	return fmt.Sprintf("%s: document %d (line %d)", d.File, d.Number, d.Line)
}

// Title returns kind and name of the object, for messages.
func (d Document) Title() string {
	return fmt.Sprintf("%s %q", d.Object.GetKind(), d.Object.GetName())
}

// Rules restrict the documents.
type Rules struct {
	// Only is the kind of the documents that are read; others are ignored. Empty reads all.
	Only schema.GroupKind
	// Kinds are the allowed kinds; empty allows all.
	Kinds []schema.GroupVersionKind
	// Namespace is set in objects without a namespace. If it is empty, they stay without one.
	Namespace string
}

// Load reads files and directories. In a directory it reads the YAML and JSON files in the order of their names,
// without subdirectories. The error lists every problem.
func Load(paths []string, rules Rules) ([]Document, error) {
	var documents []Document
	var problems []error
	for _, path := range paths {
		files, err := expand(path)
		problems = append(problems, err)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				problems = append(problems, plain(err))
				continue
			}
			found, err := Parse(file, content, rules)
			documents, problems = append(documents, found...), append(problems, err)
		}
	}
	problems = append(problems, twice(documents))
	return documents, errors.Join(problems...)
}

// LoadFS loads all files of a file system, like Load.
func LoadFS(files fs.FS, rules Rules) ([]Document, error) {
	var documents []Document
	var problems []error
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		found, err := Parse(path, content, rules)
		documents, problems = append(documents, found...), append(problems, err)
		return nil
	})
	return documents, errors.Join(append(problems, err, twice(documents))...)
}

// expand returns the files at a path.
func expand(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, plain(err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, plain(err)
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: the directory has no .yaml, .yml or .json files", path)
	}
	return files, nil
}

// plain removes the name of the system call from an error.
func plain(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return err
}

// Parse reads the documents of one file. See [Load].
func Parse(file string, content []byte, rules Rules) ([]Document, error) {
	var documents []Document
	var problems []error
	number := 0
	for _, part := range split(content) {
		// Blank lines in front make the line numbers of the parser match the file.
		padded := append(bytes.Repeat([]byte("\n"), part.line-1), part.text...)
		content := map[string]any{}
		err := yaml.UnmarshalStrict(padded, &content)
		if err == nil && len(content) == 0 {
			continue // only comments
		}
		number++
		document := Document{File: file, Number: number, Line: part.line, Object: &unstructured.Unstructured{Object: content}}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s", document.Where(), readable(err)))
			continue
		}
		if !rules.Only.Empty() && document.Object.GroupVersionKind().GroupKind() != rules.Only {
			continue
		}
		if err := check(document, rules.Kinds); err != nil {
			problems = append(problems, err)
			continue
		}
		dropServerFields(document.Object)
		if rules.Namespace != "" && document.Object.GetNamespace() == "" && document.Object.GetKind() != "Namespace" {
			document.Object.SetNamespace(rules.Namespace)
		}
		documents = append(documents, document)
	}
	return documents, errors.Join(problems...)
}

type part struct {
	line int // first line of text
	text []byte
}

// split splits a file at the lines that separate YAML documents.
func split(content []byte) []part {
	parts := []part{{line: 1}}
	line := 0
	for text := range bytes.Lines(content) {
		line++
		if rest, ok := bytes.CutPrefix(text, []byte("---")); ok &&
			(len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' || rest[0] == '\t') {
			// The text after the dashes is part of the document; usually it is a comment.
			parts = append(parts, part{line: line, text: append([]byte("   "), rest...)})
			continue
		}
		last := &parts[len(parts)-1]
		last.text = append(last.text, text...)
	}
	for i := range parts {
		skipBlank(&parts[i])
	}
	return parts
}

// skipBlank moves the start of a part to the first line with content.
func skipBlank(p *part) {
	for {
		line, rest, more := bytes.Cut(p.text, []byte("\n"))
		if trimmed := bytes.TrimSpace(line); !more || (len(trimmed) > 0 && trimmed[0] != '#') {
			return
		}
		p.line, p.text = p.line+1, rest
	}
}

// readable removes the names of Go functions and types from a parser's message.
func readable(err error) string {
	message := err.Error()
	for _, prefix := range []string{
		"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "yaml: ",
	} {
		message = strings.TrimPrefix(message, prefix)
	}
	if strings.HasPrefix(message, "json: cannot unmarshal") {
		return "malformed: a document must be an object with fields, such as apiVersion and kind"
	}
	// The parser formats several mistakes as a list.
	lines := strings.FieldsFunc(strings.TrimPrefix(message, "unmarshal errors:"), func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return "malformed YAML: " + strings.Join(lines, "; ")
}

func check(d Document, kinds []schema.GroupVersionKind) error {
	var problems []string
	for _, field := range []string{"apiVersion", "kind"} {
		if value, _, err := unstructured.NestedString(d.Object.Object, field); value == "" || err != nil {
			problems = append(problems, field+": must be a non-empty string")
		}
	}
	if len(problems) == 0 && len(kinds) > 0 && !slices.Contains(kinds, d.Object.GroupVersionKind()) {
		problems = append(problems, fmt.Sprintf("kind: %s of %s is not supported; supported kinds: %s",
			d.Object.GetKind(), d.Object.GetAPIVersion(), list(kinds)))
	}
	if name, _, err := unstructured.NestedString(d.Object.Object, "metadata", "name"); name == "" || err != nil {
		problems = append(problems, "metadata.name: must be a non-empty string")
	}
	if _, _, err := unstructured.NestedString(d.Object.Object, "metadata", "namespace"); err != nil {
		problems = append(problems, "metadata.namespace: must be a string")
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", d.Where(), strings.Join(problems, "; "))
}

func list(kinds []schema.GroupVersionKind) string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = fmt.Sprintf("%s (%s)", kind.Kind, kind.GroupVersion())
	}
	return strings.Join(names, ", ")
}

// dropServerFields removes fields that the API server sets and that cannot be applied.
func dropServerFields(object *unstructured.Unstructured) {
	for _, field := range []string{
		"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink",
	} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
}

// twice returns an error for each object that is in several documents.
func twice(documents []Document) error {
	type key struct {
		kind            schema.GroupVersionKind
		namespace, name string
	}
	first := map[key]Document{}
	var problems []error
	for _, d := range documents {
		k := key{d.Object.GroupVersionKind(), d.Object.GetNamespace(), d.Object.GetName()}
		if other, ok := first[k]; ok {
			problems = append(
				problems, fmt.Errorf("%s: metadata.name: %s is already in %s", d.Where(), d.Title(), other.Where()),
			)
			continue
		}
		first[k] = d
	}
	return errors.Join(problems...)
}
