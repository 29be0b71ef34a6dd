//! The ASCII forms of characters in a display name.

/// Characters by their transliteration in `text-unidecode`, in lower case.
const LETTERS: [(&str, &str); 48] = [
    ("1", "¹"),
    ("1 2", "½"),
    ("1 4", "¼"),
    ("2", "²"),
    ("3", "³"),
    ("3 4", "¾"),
    ("a", "ªÀÁÂÃÄÅàáâãäåĀāĂăĄąÅḀḁẠạẢảẤấẦầẨẩẪẫẬậẮắẰằẲẳẴẵẶặ"),
    ("ae", "Ææ"),
    ("b", "ḂḃḄḅḆḇ"),
    ("c", "ÇçĆćĈĉĊċČčḈḉ"),
    ("c ", "¢"),
    ("d", "ÐðĎďĐđḊḋḌḍḎḏḐḑḒḓ"),
    ("deg", "°"),
    ("degc", "℃"),
    ("degf", "℉"),
    ("e", "ÈÉÊËèéêëĒēĔĕĖėĘęĚěḔḕḖḗḘḙḚḛḜḝẸẹẺẻẼẽẾếỀềỂểỄễỆệ"),
    ("eur", "€"),
    ("f", "Ḟḟ"),
    ("ff", "ﬀ"),
    ("fi", "ﬁ"),
    ("fl", "ﬂ"),
    ("g", "ĜĝĞğĠġĢģḠḡ"),
    ("h", "ĤĥĦħḢḣḤḥḦḧḨḩḪḫẖ"),
    ("i", "ÌÍÎÏìíîïĨĩĪīĬĭĮįİıḬḭḮḯỈỉỊị"),
    ("ij", "Ĳĳ"),
    ("j", "Ĵĵ"),
    ("k", "ĶķĸḰḱḲḳḴḵ"),
    ("l", "ĹĺĻļĽľŁłḶḷḸḹḺḻḼḽ"),
    ("l ", "Ŀŀ"),
    ("m", "µḾḿṀṁṂṃ"),
    ("n", "ÑñŃńŅņŇňŉṄṅṆṇṈṉṊṋ"),
    ("ng", "Ŋŋ"),
    ("no", "№"),
    ("o", "ºÒÓÔÕÖØòóôõöøŌōŎŏŐőΩṌṍṎṏṐṑṒṓỌọỎỏỐốỒồỔổỖỗỘộỚớỜờỞởỠỡỢợ"),
    ("oe", "Œœ"),
    ("p", "¶ṔṕṖṗ"),
    ("ps", "£"),
    ("r", "ŔŕŖŗŘřṘṙṚṛṜṝṞṟ"),
    ("s", "ŚśŜŝŞşŠšſṠṡṢṣṤṥṦṧṨṩẛȘș"),
    ("ss", "§ßẞ"),
    ("t", "ŢţŤťŦŧṪṫṬṭṮṯṰṱẗȚț"),
    ("th", "Þþ"),
    ("tm", "™"),
    ("u", "ÙÚÛÜùúûüŨũŪūŬŭŮůŰűŲųṲṳṴṵṶṷṸṹṺṻỤụỦủỨứỪừỬửỮữỰự"),
    ("w", "ŴŵẀẁẂẃẄẅẆẇẈẉẘ"),
    ("x", "×ẊẋẌẍ"),
    ("y", "ÝýÿŶŷŸẎẏẙỲỳỴỵỶỷỸỹ"),
    ("z", "ŹźŻżŽžẐẑẒẓẔẕ"),
];

/// Returns the ASCII form of a character that is not ASCII: letters and digits, or a space for a separator of words.
/// `None` if the form is not known here.
pub(super) fn transliterate(char: char) -> Option<&'static str> {
    let found = LETTERS.iter().find(|(_, chars)| chars.contains(char)).map(|(ascii, _)| *ascii);
    found.or_else(|| sign(char))
}

/// Returns the ASCII form of a sign. `text-unidecode` writes some signs as punctuation and drops others: accents after
/// their letter, marks without width, apostrophes, most symbols, and pictures.
fn sign(char: char) -> Option<&'static str> {
    match char {
        '‚' => Some(","),
        '¥' => Some("y "),
        '©' => Some(" c "),
        '®' => Some(" r "),
        '‰' => Some(" 0"),
        '‱' => Some(" 00"),
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{300}'..='\u{34e}'
        | '\u{200c}'..='\u{200f}'
        | '‘'
        | '’'
        | '‛'
        | '\u{202a}'..='\u{202e}'
        | '′'..='‴'
        | '\u{2600}'..='\u{2613}'
        | '\u{2619}'..='\u{2671}'
        | '\u{2701}'..='\u{275e}'
        | '\u{2761}'..='\u{27af}'
        | '\u{27b1}'..='\u{27be}'
        | '\u{1f300}'..='\u{1faff}' => Some(""),
        '\u{a0}'..='\u{bf}'
        | '÷'
        | '\u{2000}'..='\u{2049}'
        | '\u{2614}'..='\u{27bf}'
        | '\u{fe00}'..='\u{fe0f}' => Some(" "),
        _ => None,
    }
}
