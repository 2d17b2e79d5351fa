//! The page is one file, refers to nothing, stays small, and takes no text for markup.

use homenode_view::PyramidBudget;
use homenode_view::page::{self, PictureSource};

use crate::support::{HOSTILE, hostile, model, named, synthetic};

#[test]
fn it_is_one_file_without_a_reference_to_any_other() {
    let set = synthetic(20, 500);
    let page = page::write_file(&mut model(&set, PyramidBudget::FILE), page::MOST_BYTES).unwrap();
    assert!(page.len() <= page::MOST_BYTES);
    // The name of SVG, which nobody opens.
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for way in
        ["http:", "https:", "//cdn", "@import", "url(", " src=", "import(", "WebSocket", "XMLHttpRequest"]
    {
        assert!(!page.contains(way), "{way}");
    }
    assert_eq!(page.matches("href=").count(), 1, "the empty icon alone");
    assert!(page.contains("connect-src 'none'"), "it may ask nobody");
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("data-finer"), "and has nobody to ask");
}

#[test]
fn the_same_data_set_gives_the_same_bytes() {
    let of =
        || page::write_file(&mut model(&synthetic(12, 300), PyramidBudget::FILE), page::MOST_BYTES).unwrap();
    assert!(of() == of());
}

#[test]
fn a_page_that_is_too_large_loses_its_finest_pictures_first() {
    let set = synthetic(60, 4000);
    let whole = page::write_file(&mut model(&set, PyramidBudget::FILE), usize::MAX).unwrap();
    let mut model = model(&set, PyramidBudget::FILE);
    let most = whole.len() / 2;
    let page = page::write_file(&mut model, most).unwrap();
    assert!(page.len() <= most, "{} of {most}", page.len());
    assert!(model.levels_left_out > 0);
    assert!(model.objects.iter().all(|o| !o.levels.is_empty()));
    assert_eq!(model.objects[0].report.name, "column_index");
}

#[test]
fn texts_of_a_recording_never_become_markup() {
    let set = hostile();
    for home in [PictureSource::File, PictureSource::Server] {
        let page = page::write(&model(&set, PyramidBudget::FILE), home).unwrap();
        assert_eq!(page.matches("</script").count(), 2, "the data's and the program's own ends");
        assert_eq!(page.matches("<script").count(), 2);
        assert!(!page.contains("<img"));
        let title = page.split("<title>").nth(1).unwrap().split("</title>").next().unwrap();
        assert!(title.starts_with("&lt;/script&gt;&lt;script&gt;"), "{title}");
        let json = page.split("id=\"model\">").nth(1).unwrap().split("</script>").next().unwrap();
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(value["objects"][0]["report"]["name"], HOSTILE, "and nothing is lost");
    }
}

#[test]
fn endless_names_do_not_make_the_page_large() {
    let set = named(&"long ".repeat(1 << 20));
    let page = page::write_file(&mut model(&set, PyramidBudget::FILE), page::MOST_BYTES).unwrap();
    assert!(page.len() <= page::MOST_BYTES, "{} bytes", page.len());
}
