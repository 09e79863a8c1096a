// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const recordSuffix = ".json"

// Directory is a [Provider] that stores each record in its own file, <name>.json, in one directory.
//
// Several goroutines and processes may use one directory. Readers never see a partial record, because files are created
// and changed only by a rename or a link. If several owners claim a free name at the same time, exactly one gets it.
// Two callers must not publish for the same owner at the same time. A controller meets this requirement: it reconciles
// one object at a time, and leader election excludes a second controller.
type Directory struct {
	path string
}

var _ Provider = (*Directory)(nil)

// NewDirectory returns a Directory. The first Publish creates the directory.
func NewDirectory(path string) *Directory {
	return &Directory{path: path}
}

// Publish implements [Provider].
func (d *Directory) Publish(ctx context.Context, record Record) error {
	if err := record.validate(); err != nil {
		return err
	}
	if err := d.claim(record); err != nil {
		return fmt.Errorf("publish %s: %w", record.Name, err)
	}
	return d.withdraw(ctx, record.Owner, record.Name)
}

// Withdraw implements [Provider].
func (d *Directory) Withdraw(ctx context.Context, owner string) error {
	return d.withdraw(ctx, owner, "")
}

// Lookup implements [Provider].
func (d *Directory) Lookup(_ context.Context, name string) (Record, error) {
	if err := validateName(name); err != nil {
		return Record{}, err
	}
	record, err := d.read(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return Record{}, fmt.Errorf("look up %s: %w", name, err)
	}
	return record, nil
}

// claim creates the file of the record, or updates it if it belongs to the owner.
func (d *Directory) claim(record Record) error {
	current, err := d.read(d.file(record.Name))
	switch {
	case err == nil && current == record:
		return nil
	case err == nil && current.Owner != record.Owner:
		return fmt.Errorf("%w by %s", ErrTaken, current.Owner)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	owned := err == nil

	draft, err := d.draft(record)
	if err != nil {
		return err
	}
	defer os.Remove(draft)
	if owned {
		return os.Rename(draft, d.file(record.Name))
	}
	// Unlike a rename, a link fails if the name was created in the meantime.
	err = os.Link(draft, d.file(record.Name))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w by another owner", ErrTaken)
	}
	return err
}

// withdraw removes all records of the owner except the record keep.
func (d *Directory) withdraw(ctx context.Context, owner, keep string) error {
	entries, err := os.ReadDir(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("withdraw records of %s: %w", owner, err)
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !strings.HasSuffix(entry.Name(), recordSuffix) || entry.Name() == keep+recordSuffix {
			continue
		}
		file := filepath.Join(d.path, entry.Name())
		record, err := d.read(file)
		if err == nil && record.Owner == owner {
			err = os.Remove(file)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("withdraw records of %s: %w", owner, err)
		}
	}
	return nil
}

// draft writes a record to a file that readers ignore: it does not have the suffix of a record.
func (d *Directory) draft(record Record) (string, error) {
	content, err := json.Marshal(record)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(d.path, ".draft-*")
	if err != nil {
		return "", err
	}
	_, err = file.Write(append(content, '\n'))
	if err := errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

func (d *Directory) read(file string) (Record, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Record{}, err
	}
	var record Record
	if err := json.Unmarshal(content, &record); err != nil {
		return Record{}, fmt.Errorf("%s is damaged: %w", file, err)
	}
	return record, nil
}

func (d *Directory) file(name string) string {
	return filepath.Join(d.path, name+recordSuffix)
}

func (r Record) validate() error {
	err := validateName(r.Name)
	if r.Target == "" {
		err = errors.Join(err, errors.New("a record needs a Target"))
	}
	if r.Owner == "" {
		err = errors.Join(err, errors.New("a record needs an Owner"))
	}
	return err
}

// validateName also rejects names that would be outside of the directory.
func validateName(name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%q is not a domain name: %s", name, strings.Join(problems, "; "))
	}
	return nil
}
